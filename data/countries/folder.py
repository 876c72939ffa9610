"""The countries as a data folder in QUEST's format, made on first use and kept in the user's cache."""

import os
from pathlib import Path

from ..embedded import embedded_folder, write_atoms, write_rows
from .atoms import country_atoms
from .describe import country_documents
from .queries import SIZES, country_queries

FILES = ("documents.jsonl", *(f"{split}.jsonl" for split in SIZES), "atoms.json")


def countries_folder(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """A folder with documents, train, dev, test and atoms, in `cache_dir` or the user's cache (`embedded_folder`)."""
    return embedded_folder("countries", write_countries, FILES, cache_dir)


def write_countries(folder: str | os.PathLike[str]) -> Path:
    """Write the data files into a folder; each file is replaced as a whole."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "documents.jsonl", country_documents())
    for split in SIZES:
        write_rows(folder / f"{split}.jsonl", country_queries(split))
    write_atoms(folder / "atoms.json", country_atoms())
    return folder
