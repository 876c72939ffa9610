"""Hold out a share of a folder's training queries as a dev split, so that training and evaluation agree on it.

    boolbert data split QUEST_FOLDER --output DIR [--dev 0.2] [--seed 0]

The rows are copied as they stand, in their order; documents and atoms are copied along.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np

from ..core.errors import DataError
from .lines import read_lines

HELD_OUT = 0.2  # share of the training rows


def split_folder(source: Path, output: Path, *, dev: float = HELD_OUT, seed: int = 0) -> tuple[int, int]:
    """Write `output` with train and dev made of the training queries of `source`; the sizes of the two."""
    if not source.is_dir():
        raise DataError(f"{source}: no such folder; expected one with documents and train")
    train = _only(source, "train")
    lines = [line for _, line in read_lines(train)]
    try:
        chosen = keep_and_hold(len(lines), dev, seed)
    except DataError as error:
        raise DataError(f"{train}: --dev: {error}") from None
    if output.exists() and any(output.iterdir()):
        raise DataError(f"{output}: exists and is not empty; choose another --output")
    output.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("train", "dev"), chosen, strict=True):
        text = "".join(lines[row] + "\n" for row in rows)
        (output / f"{name}.jsonl").write_text(text, encoding="utf-8", newline="\n")
    for name in ("documents", "atoms"):
        if name == "documents" or any(source.glob(f"{name}.json*")):
            shutil.copyfile(_only(source, name), output / _only(source, name).name)
    return len(chosen[0]), len(chosen[1])


def keep_and_hold(count: int, share: float, seed: int = 0) -> tuple[list[int], list[int]]:
    """Which of `count` rows to keep, and which share of them to hold out, both in order.

    >>> keep, hold = keep_and_hold(10, 0.2)
    >>> len(keep), len(hold), sorted(keep + hold) == list(range(10))
    (8, 2, True)
    """
    held = max(1, round(count * share))
    if not 0 < share < 1 or held >= count:
        raise DataError(f"a share of {share} of {count} rows cannot be held out; it must leave rows on both sides")
    chosen = set(np.random.default_rng(seed).permutation(count)[:held].tolist())
    return sorted(set(range(count)) - chosen), sorted(chosen)


def _only(folder: Path, name: str) -> Path:
    found = [
        path for ending in (".jsonl", ".jsonl.gz", ".json", ".json.gz") if (path := folder / f"{name}{ending}").exists()
    ]
    if len(found) != 1:
        told = ", ".join(path.name for path in found) or "none"
        raise DataError(f"{folder}: expected one file {name}.jsonl or {name}.jsonl.gz, found {told}")
    return found[0]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="boolbert data split", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a QUEST-format folder with documents and train")
    parser.add_argument("--output", type=Path, required=True, help="a new folder")
    parser.add_argument("--dev", type=float, default=HELD_OUT, help="share of the training queries that is held out")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    args = parser.parse_args(arguments)
    train, dev = split_folder(args.folder, args.output, dev=args.dev, seed=args.seed)
    print(f"{args.output}: {train:,} training and {dev:,} dev queries")
