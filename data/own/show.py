"""Made queries for people to look at: what is asked, what answers it, what breaks it."""

from random import Random

from ...core.terminal import fitted, printable
from ..hard_negatives import HardNegatives
from ..quest import Quest

_SHOWN, _WIDTH = 3, 40


def show_queries(folder: str, count: int = 20, split: str = "train", seed: int = 0) -> str:
    """Some queries of a folder, each with a few of the documents that answer it and of those that break an operator."""
    quest = Quest(folder, progress=False)
    queries = quest.queries(split)
    chosen = sorted(Random(seed).sample(range(len(queries)), min(count, len(queries))))
    asked = [queries[index] for index in chosen]
    gold = quest.gold(asked)
    breaking = HardNegatives.from_atoms(asked, quest.atoms or {}, gold)
    lines = []
    for index, query in enumerate(asked):
        lines.append(printable(query.query))
        lines.append(f"    answers ({len(gold[index]):,}): {_titles(quest, gold[index].tolist())}")
        rows = sorted({int(row) for pool in breaking[index] for row in pool})
        if rows:
            lines.append(f"    breaks it ({len(rows):,}): {_titles(quest, rows)}")
    return "\n".join(lines)


def _titles(quest: Quest, rows: list[int]) -> str:
    titles = (quest.corpus.titles[row] for row in rows[:_SHOWN])
    shown = "; ".join(fitted(title, _WIDTH) for title in titles)
    return shown + ("; ..." if len(rows) > _SHOWN else "")
