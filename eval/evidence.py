"""What evidence adds to a model: rankings by its vectors alone, and with what documents say, clause by clause.

    python eval/evidence.py                                                       # the embedded countries, dev
    python eval/evidence.py --data boolmovies:dev --queries 168 --documents 2500  # QUEST's schema, a part of it
    python eval/evidence.py --data denials:test                                   # documents that say what they lack
    python eval/evidence.py --pools excluir_dev comlq_dev                         # folders as eval/exclusion.py reads

    python eval/evidence.py --data trades:first                                   # data/trades, by one author
    python eval/evidence.py --data unseen                                         # three trades nothing learned from
    python eval/evidence.py --data lists                                          # data/lists.py: nothing but words

Everything is ranked by `BoolSearcher`, so a figure is what `boolbert search` does. Of a part, documents are kept that
answer its queries, and others at random. "Good" and "violating" are shares of the first R documents, R being how many
answer the query, at most ten. "Excluded" is the share of the first R, without that bound, that a query excludes, "in
ten" how many of the first ten these are, and "others" how many of them are no answer either; in pools, those of its
traps, and "above", R@3 and V@3 are those of eval/exclusion.py. "Pairs": of two questions whose right documents are each
other's traps, both have the right one first. Of trades whose queries are marked, "by hand" is search with what a person
has read in them: the ceiling of every reader.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.boolean.operators import SHORT_NAMES
from boolbert.boolean.query import Query, query_of
from boolbert.boolean.tags import parse_marked
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import run_script
from boolbert.core.files import write_json
from boolbert.data.lists import lists
from boolbert.data.tasks import Question
from boolbert.data.trades import FOLDER, Trade, by_authors, trades
from boolbert.eval.exclusion import TrapQuery, TrapSet, named_task, read_trap_set, score_ranked
from boolbert.eval.searched import Searched, TextIndex
from boolbert.retrieval import ranking
from boolbert.retrieval.metrics import means
from boolbert.retrieval.models import SearchModel, default_model, load_model
from boolbert.retrieval.neighbours import Scores
from boolbert.search.rank import READ
from boolbert.search.searcher import BoolSearcher


@dataclass
class Arguments:
    model: str | None = flag(None, "model folder or Hub id; the default model if not given")
    data: str = flag("countries", "QUEST-format FOLDER:SPLIT, countries, denials:SPLIT, trades:AUTHOR, unseen or lists")
    pools: list[str] = flag([], "folders with a corpus and queries")
    queries: int | None = flag(None, "take this many, drawn at random")
    documents: int | None = flag(None, "and this many documents, those that answer first")
    read: int = flag(READ, "documents that the document reader looks at; 0 for none")
    output: str | None = flag(None, "also write the figures to this JSON file")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


def quest_pool(data: str) -> TrapSet:
    task = named_task(data)
    excluded: Sequence[Any] = task.negated if task.negated is not None else [()] * len(task)
    groups = task.groups["domain" if data.startswith("denials:") else "template"]
    kinds = [SHORT_NAMES.get(group, group) for group in groups]
    asked = zip(task.texts, task.gold, excluded, kinds, strict=True)
    queries = [TrapQuery(text, list(gold), list(out), kind) for text, gold, out, kind in asked]
    return TrapSet(data, task.corpus.texts(), queries)


def chosen_trades(data: str) -> list[Trade]:
    """The trades of one author, or those that nothing has learned from."""
    if data == "unseen":
        return trades(FOLDER / "trades" / "unseen")
    return by_authors(trades(), [data.removeprefix("trades:")], "--data trades:AUTHOR")


def trade_pool(trade: Trade) -> TrapSet:
    queries = [TrapQuery(one.text, one.good, one.violating, "trade") for one in trade.queries() if one.good]
    return TrapSet(trade.name, trade.texts, queries)


def read_by_hand(every: Sequence[Trade]) -> dict[str, Query]:
    """What a person has read in the queries of trades, by their texts; who looks for items excludes a set of them."""
    marked = (one.marked for trade in every for one in trade.queries() if one.marked)
    found = (query_of(*parse_marked(text), "a person") for text in marked)
    return {query.text: replace(query, kind="set" if query.excluded else None) for query in found}


def list_pool() -> TrapSet:
    made = lists()
    queries = [TrapQuery(query.text, query.gold, query.excluded, query.kind) for query in made.queries]
    return TrapSet("lists", made.texts, queries)


def part_of(pool: TrapSet, queries: int | None, documents: int | None) -> TrapSet:
    """Some of the queries, and of the documents all that answer them and others at random.

    >>> pool = TrapSet("letters", ["a", "b", "c"], [TrapQuery("which?", [2], [0])])
    >>> part_of(pool, 1, 1).queries
    [TrapQuery(text='which?', gold=[0], traps=[], kind='all', rewrite=None)]
    """
    draw = random.Random(0)
    chosen = pool.queries if queries is None else draw.sample(pool.queries, min(queries, len(pool.queries)))
    if documents is None:
        return pool._replace(queries=chosen)
    gold = sorted({row for query in chosen for row in query.gold})
    others = sorted(set(range(len(pool.texts))) - set(gold))
    rows = gold + draw.sample(others, min(len(others), max(0, documents - len(gold))))
    new = {row: number for number, row in enumerate(rows)}
    kept = [
        query._replace(gold=[new[row] for row in query.gold], traps=[new[row] for row in query.traps if row in new])
        for query in chosen
    ]
    return TrapSet(pool.name, [pool.texts[row] for row in rows], kept)


def scores(
    model: SearchModel, pool: TrapSet, read: int = READ, by_hand: Mapping[str, Query] | None = None
) -> dict[str, Scores]:
    """Scores (Q, N) in the order in which five systems rank: the plain encoder, BM25, vectors alone, search that reads
    no documents, and search; and search with queries that a person has read."""
    questions = [Question(query.text, query.text, ()) for query in pool.queries]
    held = TextIndex(pool.texts, model)
    searcher = BoolSearcher(model, held.index, onnx=model.bert is not None and str(model.encoder.device) == "cpu")
    systems = [Searched(how, searcher, how) for how in ("plain", "words", "vectors")]
    systems += [Searched("unread", searcher, read=0), Searched("search", searcher, read=read)]
    if by_hand and all(query.text in by_hand for query in pool.queries):
        systems.append(Searched("by hand", searcher, read=read, readings=by_hand))
    return {system.name: system.scorer(questions)(0, len(pool.texts)).numpy() for system in systems}


def figures(pool: TrapSet, found: dict[str, Scores]) -> dict[str, dict[str, dict[str, float]]]:
    """{kind: {system: {metric: mean}}}, all kinds together first."""
    gold, excluded = ([getattr(query, name) for query in pool.queries] for name in ("gold", "traps"))
    does_exclude, known = list(map(bool, excluded)), [query.gold + query.traps for query in pool.queries]
    values: dict[str, dict[str, Any]] = {}
    for system, table in found.items():
        ranked = np.argsort(-table, axis=1, kind="stable")
        first = ranked[:, :10]
        cut = [own[: max(1, min(len(query.gold), 10))] for own, query in zip(ranked, pool.queries, strict=True)]
        values[system] = {
            "good": _shares(cut, gold),
            "violating": _shares(cut, excluded),
            "R-prec": ranking.r_precision(ranked, gold),
            "nDCG@10": ranking.ndcg_at_k(ranked, gold, 10),
            "MRR@10": ranking.mrr_at_k(ranked, gold, 10),
            "R@100": ranking.recall_at_k(ranked, gold, min(100, len(pool.texts))),
            "excluded": ranking.violation_rate(ranked, excluded, gold),
            "in ten": np.where(does_exclude, ranking.hits(first, excluded).sum(1), np.nan),
            "others": np.where(does_exclude, (~ranking.hits(first, known)).sum(1), np.nan),
            "pairs": both_right(table, pool.queries),
        }
        if all(excluded):  # each query has a trap
            values[system] |= score_ranked(ranked, pool)
    kinds = np.array([query.kind for query in pool.queries])
    groups = {"all": kinds == kinds, **{kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())}}
    return {kind: {system: means(own, chosen) for system, own in values.items()} for kind, chosen in groups.items()}


def _shares(ranked: Sequence[npt.NDArray[np.int64]], rows: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
    """The share of each query's first documents that are among these rows."""
    return np.array([float(np.isin(first, own).mean()) for first, own in zip(ranked, rows, strict=True)])


def both_right(table: Scores, queries: Sequence[TrapQuery]) -> npt.NDArray[np.float64]:
    """1 for a query of a pair whose two queries both have their document above the other's, 0 where one has not; NaN
    for queries without a partner.

    >>> asked = [TrapQuery("hot?", [0], [1], "pair"), TrapQuery("cold?", [1], [0], "pair"), TrapQuery("wet?", [2], [])]
    >>> both_right(np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]]), asked).tolist()
    [1.0, 1.0, nan]
    """
    right: dict[frozenset[int], list[bool]] = {}
    pairs = [frozenset(query.gold + query.traps) if query.kind == "pair" else frozenset() for query in queries]
    for pair, query, scores in zip(pairs, queries, table, strict=True):
        if pair:
            right.setdefault(pair, []).append(max(scores[query.gold]) > max(scores[query.traps]))
    return np.array([all(right[pair]) if len(right.get(pair, ())) == 2 else np.nan for pair in pairs])


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    model = load_model(args.model, device=args.device) if args.model else default_model(args.device)
    pools, by_hand = [read_trap_set(folder, need_traps=False) for folder in args.pools], dict[str, Query]()
    if args.data == "unseen" or args.data.startswith("trades:"):
        chosen = chosen_trades(args.data)
        pools, by_hand = [trade_pool(trade) for trade in chosen], read_by_hand(chosen)
    if args.data == "lists":
        pools = [list_pool()]
    pools = pools or [quest_pool(args.data)]
    written = {}
    for pool in (part_of(pool, args.queries, args.documents) for pool in pools):
        written[pool.name] = measured = figures(pool, scores(model, pool, args.read, by_hand))
        print(f"\n{pool.name}: {len(pool.queries)} queries, {len(pool.texts)} documents")
        for kind, systems in measured.items():
            for system, own in systems.items():
                print(f"{kind:14} {system:14} " + "  ".join(f"{name} {value:.3f}" for name, value in own.items()))
    if len(written) > 1:
        print("\nthe mean of all")
        for system in next(iter(written.values()))["all"]:
            found = [own["all"][system] for own in written.values()]
            names = [name for name in found[0] if all(name in own for own in found)]
            print(
                f"{system:14} " + "  ".join(f"{name} {np.nanmean([own[name] for own in found]):.3f}" for name in names)
            )
    if args.output:
        write_json(args.output, written)


if __name__ == "__main__":
    run_script(main)
