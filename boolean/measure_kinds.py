"""How often `kind_of_exclusion` says what people say of public queries.

    python -m boolbert.boolean.measure_kinds tests/kinds_of_not.tsv --data DIR --half test

The labels name a set, a query's id, a half and a kind. DIR holds the sets: NAME/queries.jsonl.gz with `id` and `text`,
and quest/train_full.jsonl, whose ids are the numbers of its lines.
"""

import argparse
from collections import Counter
from pathlib import Path

from .kinds import kind_of_exclusion
from .measure import read_rows


def texts_of(name: str, data: Path) -> dict[str, str]:
    """The queries of a set by their ids."""
    if name == "quest_train":
        rows = read_rows(data / "quest" / "train_full.jsonl", lambda row: row["query"], "`query`")
        return {str(number): query for number, query in enumerate(rows)}
    return dict(read_rows(data / name / "queries.jsonl.gz", lambda row: (row["id"], row["text"]), "`id` and `text`"))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m boolbert.boolean.measure_kinds", description=__doc__.split("\n")[0]
    )
    parser.add_argument("labels", type=Path, help="a file of set, id, half and kind, with tabs between them")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--half", choices=("dev", "test"), default="dev")
    options = parser.parse_args(arguments)
    try:
        lines = options.labels.read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        texts = {name: texts_of(name, options.data) for name in dict.fromkeys(row[0] for row in rows)}
        right: Counter[str] = Counter()
        total: Counter[str] = Counter()
        for name, number, half, kind in rows:
            if half == options.half:
                is_right = kind_of_exclusion(texts[name][number]) == kind
                for counted in (name, kind, "all"):
                    right[counted] += is_right
                    total[counted] += 1
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"error: {error}") from None
    for counted in total:
        print(f"{counted}: {right[counted]} of {total[counted]} right, {right[counted] / total[counted]:.3f}")


if __name__ == "__main__":
    main()
