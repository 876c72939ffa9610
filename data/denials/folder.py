"""Each split as a data folder in QUEST's format: its own documents, its queries, its atomic sets.

boolbert data denials --output my_folder
"""

import argparse
import os
from pathlib import Path

from ..embedded import embedded_folder, write_atoms, write_rows
from .generate import SPLITS, denial_atoms, denial_documents, denial_queries

FILES = tuple(f"{split}/{name}" for split in SPLITS for name in ("documents.jsonl", f"{split}.jsonl", "atoms.json"))


def denials_folder(split: str) -> Path:
    """The folder of one split, in the user's cache."""
    return embedded_folder("denials", write_denials, FILES) / split


def write_denials(folder: str | os.PathLike[str]) -> Path:
    """Write a folder for each split; each file is replaced as a whole."""
    folder = Path(folder)
    for split in SPLITS:
        (folder / split).mkdir(parents=True, exist_ok=True)
        write_rows(folder / split / "documents.jsonl", denial_documents(split))
        write_rows(folder / split / f"{split}.jsonl", denial_queries(split))
        write_atoms(folder / split / "atoms.json", denial_atoms(split))
    return folder


def main(words: list[str] | None = None) -> None:
    description = "Write the documents that deny, with their queries."
    parser = argparse.ArgumentParser(prog="boolbert data denials", description=description)
    parser.add_argument("--output", metavar="DIR", help="the folder to write; without it, one in the cache")
    arguments = parser.parse_args(words)
    folder = write_denials(arguments.output) if arguments.output else denials_folder(SPLITS[0]).parent
    for split in SPLITS:
        print(f"{folder / split}: {len(denial_documents(split))} documents, {len(denial_queries(split))} queries")
