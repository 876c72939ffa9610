"""What evidence adds to a model: rankings by its vectors alone, and with what documents say, clause by clause.

    python eval/evidence.py                                                       # the embedded countries, dev
    python eval/evidence.py --data boolmovies:dev --queries 168 --documents 2500  # QUEST's schema, a part of it
    python eval/evidence.py --data denials:test                                   # documents that say what they lack
    python eval/evidence.py --pools excluir_dev comlq_dev                         # folders as eval/exclusion.py reads

Of a part, documents are kept that answer its queries, and others at random. Conditions are read off the queries by
`boolean/conditions.py`. "Excluded" is the share of the first R documents that a query excludes, R being how many answer
it, "in ten" how many of the first ten these are, and "others" how many of them are no answer either; in pools, those of
its traps, and "above", R@3 and V@3 are those of eval/exclusion.py. "Pairs": of two questions whose right documents are
each other's traps, both have the right one first.
"""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from boolbert.boolean.conditions import read_conditions
from boolbert.boolean.operators import SHORT_NAMES
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import run_script
from boolbert.core.files import write_json
from boolbert.data.tasks import Question
from boolbert.eval.exclusion import TrapQuery, TrapSet, named_task, plain_vectors, read_trap_set, score_ranked
from boolbert.eval.systems import Dense, OnDense
from boolbert.retrieval import ranking
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.evidence import ConditionVectors, Evidence, unit_length
from boolbert.retrieval.metrics import means
from boolbert.retrieval.models import default_model, load_model
from boolbert.retrieval.neighbours import BlockScorer, Scores, dot_products

BATCH = 64


@dataclass
class Arguments:
    model: str | None = flag(None, "model folder or Hub id; the default model if not given")
    data: str = flag("countries", "QUEST-format FOLDER:SPLIT, countries or denials:SPLIT")
    pools: list[str] = flag([], "folders with a corpus and queries")
    queries: int | None = flag(None, "take this many, drawn at random")
    documents: int | None = flag(None, "and this many documents, those that answer first")
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


class WithEvidence(OnDense):
    """A dual encoder, and what documents say, clause by clause. Conditions are read off the queries' text."""

    def __init__(self, name: str, dense: Dense, documents: Sequence[str] | Evidence):
        """documents: their texts, or the evidence of an index."""

        def encode_clauses(texts: Sequence[str]) -> npt.NDArray[np.float32]:
            return unit_length(encode_inputs(dense.model, texts, "document", BATCH))

        super().__init__(name, dense)
        if isinstance(documents, Evidence):
            self.evidence = documents
        else:
            self._folder = tempfile.TemporaryDirectory()  # deleted with this object
            path = Path(self._folder.name, "evidence")
            Evidence.build(path, documents, encode_clauses, corpus="texts", model=name)
            self.evidence = Evidence(path, "texts", name)

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        whole = self.dense.scorer(questions)(0, self.documents).cpu().numpy()
        asked = self.conditions(questions)
        rows, vectors = np.arange(self.documents), np.array(self.dense.vectors[:], np.float32)
        scores = [self.evidence.score(one, rows, own, vectors) for one, own in zip(asked, whole, strict=True)]
        table = torch.from_numpy(np.stack(scores))
        return lambda start, end: table[:, start:end]

    def conditions(self, questions: Sequence[Question]) -> list[ConditionVectors]:
        """The conditions of all questions; their parts are encoded together, each once."""
        read = [read_conditions(question.text) for question in questions]
        texts = sorted({part.text for one in read for group in (*one.wanted, one.excluded) for part in group})
        vectors = dict(zip(texts, unit_length(plain_vectors(self.dense.model, texts)), strict=True))
        return [ConditionVectors.of(one, lambda wanted: np.stack([vectors[text] for text in wanted])) for one in read]


def scores(model: Any, pool: TrapSet) -> dict[str, Scores]:
    """The scores (Q, N) of three systems: the plain encoder, the model as it is, and the model with evidence."""
    questions = [Question(query.text, query.text, ()) for query in pool.queries]
    vectors = encode_inputs(model, pool.texts, "document", BATCH)
    dense = Dense("model", model, vectors)
    plain = torch.from_numpy(plain_vectors(model, [query.text for query in pool.queries]))
    found = {
        "plain": dot_products(plain, vectors),
        "model": dense.scorer(questions),
        "with evidence": WithEvidence("with evidence", dense, pool.texts).scorer(questions),
    }
    return {name: score(0, len(vectors)).cpu().numpy() for name, score in found.items()}


def figures(pool: TrapSet, found: dict[str, Scores]) -> dict[str, dict[str, dict[str, float]]]:
    """{kind: {system: {metric: mean}}}, all kinds together first."""
    gold, excluded = ([getattr(query, name) for query in pool.queries] for name in ("gold", "traps"))
    does_exclude, known = list(map(bool, excluded)), [query.gold + query.traps for query in pool.queries]
    values: dict[str, dict[str, Any]] = {}
    for system, table in found.items():
        ranked = np.argsort(-table, axis=1, kind="stable")
        first = ranked[:, :10]
        values[system] = {
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
    model = (load_model(args.model, device=args.device) if args.model else default_model(args.device)).encoder
    pools = [read_trap_set(folder, need_traps=False) for folder in args.pools] or [quest_pool(args.data)]
    written = {}
    for pool in (part_of(pool, args.queries, args.documents) for pool in pools):
        written[pool.name] = measured = figures(pool, scores(model, pool))
        print(f"\n{pool.name}: {len(pool.queries)} queries, {len(pool.texts)} documents")
        for kind, systems in measured.items():
            for system, own in systems.items():
                print(f"{kind:14} {system:14} " + "  ".join(f"{name} {value:.3f}" for name, value in own.items()))
    if args.output:
        write_json(args.output, written)


if __name__ == "__main__":
    run_script(main)
