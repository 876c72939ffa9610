"""Write the countries data set where you ask for it, or into the cache, and print what was written.

boolbert data countries --output my_folder
"""

import argparse

from .atoms import country_atoms
from .describe import country_documents
from .folder import countries_folder, write_countries
from .queries import SIZES, country_queries


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="boolbert data countries", description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="DIR", help="the folder to write; without it, one in the cache")
    arguments = parser.parse_args(words)
    try:
        folder = write_countries(arguments.output) if arguments.output else countries_folder()
    except OSError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    queries = ", ".join(f"{len(country_queries(split)):,} {split}" for split in SIZES)
    print(f"{folder}: {len(country_documents())} documents, {queries} queries, {len(country_atoms())} atomic sets")


if __name__ == "__main__":
    main()
