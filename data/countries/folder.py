"""The countries as a data folder in QUEST's format, made on first use and kept in the user's cache.

boolbert data countries --output my_folder
"""

import argparse
import os
from pathlib import Path

from ..embedded import embedded_folder, write_atoms, write_rows
from .atoms import country_atoms
from .describe import country_documents
from .queries import SIZES, country_queries

FILES = ("documents.jsonl", *(f"{split}.jsonl" for split in SIZES), "atoms.json")


def countries_folder() -> Path:
    """A folder with documents, train, dev, test and atoms, in the user's cache."""
    return embedded_folder("countries", write_countries, FILES)


def write_countries(folder: str | os.PathLike[str]) -> Path:
    """Write the data files into a folder; each file is replaced as a whole."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "documents.jsonl", country_documents())
    for split in SIZES:
        write_rows(folder / f"{split}.jsonl", country_queries(split))
    write_atoms(folder / "atoms.json", country_atoms())
    return folder


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="boolbert data countries", description="Write the countries data set.")
    parser.add_argument("--output", metavar="DIR", help="the folder to write; without it, one in the cache")
    arguments = parser.parse_args(words)
    folder = write_countries(arguments.output) if arguments.output else countries_folder()
    queries = ", ".join(f"{len(country_queries(split)):,} {split}" for split in SIZES)
    print(f"{folder}: {len(country_documents())} documents, {queries} queries, {len(country_atoms())} atomic sets")
