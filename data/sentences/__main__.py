"""Write the Boolean sentences to and.jsonl, or.jsonl and not.jsonl.

boolbert data sentences --output DIR --n 2000
"""

import argparse
import json
from pathlib import Path

from ...boolean import OPERATORS
from .generate import SPLITS, boolean_sentences


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="boolbert data sentences", description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the three files")
    parser.add_argument("--n", type=int, default=2000, help="triplets per operator (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=SPLITS, default="train", help="dev uses words that train never does")
    options = parser.parse_args(arguments)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        for operator in OPERATORS:
            triplets = boolean_sentences(operator, options.n, options.seed, options.split)
            path = options.output / f"{operator}.jsonl"
            path.write_text("".join(json.dumps(triplet, ensure_ascii=False) + "\n" for triplet in triplets), "utf-8")
            print(f"{path}: {len(triplets)} triplets")
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
