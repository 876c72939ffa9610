"""Write the documents that deny, with their queries, where you ask for it, or into the cache.

boolbert data denials --output my_folder
"""

import argparse

from .folder import denials_folder, write_denials
from .generate import SPLITS, denial_documents, denial_queries


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="boolbert data denials", description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="DIR", help="the folder to write; without it, one in the cache")
    arguments = parser.parse_args(words)
    try:
        folder = write_denials(arguments.output) if arguments.output else denials_folder(SPLITS[0]).parent
    except OSError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    for split in SPLITS:
        print(f"{folder / split}: {len(denial_documents(split))} documents, {len(denial_queries(split))} queries")


if __name__ == "__main__":
    main()
