"""Data that comes with the package: the countries, documents that say what they lack, and Boolean sentences."""

import gzip
import json
from functools import partial
from pathlib import Path

from ..core.arguments import Parser
from ..core.files import make_folder, write_bytes

_HERE = Path(__file__).parent


def countries_folder() -> Path:
    """A folder with documents, train, dev, test and atoms."""
    return _HERE / "countries"


def country_names() -> dict[str, list[str]]:
    """How queries name each atomic set: {"island": ["island countries", "island states", ...], ...}."""
    names: dict[str, list[str]] = json.loads((_HERE / "country_names.json").read_text(encoding="utf-8"))
    return names


def sentences_folder(split: str) -> Path:
    """Triplets of Boolean sentences for pretraining, a file per operator; "dev" has words that "train" has not."""
    return _HERE / "triplets" / split


def denials_folder(split: str) -> Path:
    """The folder of one split, "dev" or "test": its own documents, its queries, its atomic sets."""
    return _HERE / "denials" / split


def _write(name: str, words: list[str] | None = None) -> None:
    parser = Parser(prog=f"boolbert data {name}", description=f"Write the {name} data set.")
    parser.add_argument("--output", metavar="DIR", required=True, type=Path, help="the folder to write")
    output = make_folder(parser.parse_args(words).output)
    for source in sorted(path for path in (_HERE / name).rglob("*") if path.is_file()):
        path, content = output / source.relative_to(_HERE / name), source.read_bytes()
        if source.suffix == ".gz":
            path, content = path.with_suffix(""), gzip.decompress(content)
        make_folder(path.parent)
        write_bytes(path, content)
        if path.suffix == ".jsonl":
            print(f"{path}: {len(content.splitlines()):,} rows")


write_countries, write_denials = (partial(_write, name) for name in ("countries", "denials"))
