"""Does a model obey NOT? Queries with a document that answers and a trap: a document about what is excluded.

    python eval/exclusion.py --model DIR_OR_HUB_ID --data boolquestions_not excluir_dev

A data folder holds corpus.jsonl(.gz) with `id` and `text`, and queries.jsonl(.gz) with `text`, `gold`, `traps` (ids).
Such pools are small: the figures are MRR@10, how often the answer stands above its trap, and how often the answer (R@3)
and a trap (V@3) stand among the first three. The parts of a Bool-BERT are switched on one after the other; --penalties
moves along the frontier of both. If a folder has llm_rewrites.jsonl(.gz) with `id`, `wanted` and `excluded` (a list),
what an LLM made of the queries is scored too.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean import OPERATORS
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import DataError, EvaluationError, run_script
from boolbert.core.files import write_json
from boolbert.core.tables import aligned, number
from boolbert.data.embedded import denials_folder
from boolbert.data.rows import json_rows
from boolbert.data.tasks import Task, quest_task
from boolbert.retrieval import ranking
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.metrics import PerQuery, means
from boolbert.retrieval.models import bool_bert, default_model, load_encoder, twin_of
from boolbert.retrieval.neighbours import Ranked, top_k
from boolbert.retrieval.penalty import penalised_query

OFF = [0] * len(OPERATORS)


class TrapQuery(NamedTuple):
    """A query, the rows that answer it, the rows about what it excludes, and its kind."""

    text: str
    gold: list[int]
    traps: list[int]
    kind: str = "all"
    rewrite: tuple[str, list[str]] | None = None  # what an LLM says is wanted and excluded


class TrapSet(NamedTuple):
    """Queries over a small pool of texts."""

    name: str
    texts: list[str]
    queries: list[TrapQuery]


@dataclass
class Arguments:
    model: str | None = flag(None, "model folder or Hub id; the default model if not given")
    data: list[str] = flag([], "folders with a corpus and queries")
    unchanged: list[str] = flag(
        [],
        "QUEST-format FOLDER:SPLIT, countries, or a folder whose queries have a kind: list those without "
        "OR and NOT whose vector is not, to the bit, the plain encoder's",
    )
    penalties: list[float] = flag([], "strengths of the penalty to try instead of the model's")
    plain: str | None = flag(None, "the plain encoder; all-MiniLM-L6-v2 if not given")
    output: str | None = flag(None, "also write the figures to this JSON file")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


def named_task(data: str) -> Task:
    """QUEST-format data by its name: FOLDER:SPLIT, denials:SPLIT, or countries, of which dev is asked."""
    folder, _, split = data.rpartition(":")
    if not folder and data != "countries":
        raise EvaluationError(f"{data}: no such folder of queries; of QUEST-format data give the split too: {data}:dev")
    source = denials_folder(split) if folder == "denials" else folder or None
    return quest_task(source, split if folder else "dev", progress=False)


def read_trap_set(folder: str | Path, *, need_traps: bool = True) -> TrapSet:
    """A folder's pool and queries."""
    folder = Path(folder)
    corpus = list(pool_rows(folder, "corpus", "id", "text"))
    random.Random(0).shuffle(corpus)  # a file may have the answers first, and of equal scores the first would win
    rows = {row["id"]: number for number, row in enumerate(corpus)}
    queries, rewrites = [], {}
    if any(folder.glob("llm_rewrites.jsonl*")):
        found = pool_rows(folder, "llm_rewrites", "id", "wanted", "excluded")
        rewrites = {row["id"]: (row["wanted"], row["excluded"]) for row in found}
    for row in pool_rows(folder, "queries", "text", "gold", *(["traps"] if need_traps else [])):
        named = row["gold"], row.get("traps", ())
        unknown = [name for names in named for name in names if name not in rows]
        if unknown:
            raise DataError(f"{folder}: a query names document {unknown[0]!r}, which the corpus does not have")
        gold, traps = ([rows[name] for name in names] for names in named)
        queries.append(TrapQuery(row["text"], gold, traps, row.get("kind", "all"), rewrites.get(row.get("id"))))
    return TrapSet(folder.name, [row["text"] for row in corpus], queries)


def pool_rows(folder: Path, name: str, *fields: str) -> Iterator[dict[str, Any]]:
    """The rows of a folder's file "corpus" or "queries"; each has these fields."""
    path = next((path for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl") if path.exists()), None)
    if path is None:
        raise DataError(f"{folder}: {name}.jsonl is missing (it may end in .gz)")
    for row in json_rows(path, progress=False):
        if missing := [field for field in fields if field not in row.values]:
            raise row.error(missing[0], "is missing")
        yield row.values


def score_ranked(ranked: Ranked, traps: TrapSet) -> PerQuery:
    """How good a ranking (Q, N) of the whole pool is, one value per query."""
    gold, wrong = ([getattr(query, name) for query in traps.queries] for name in ("gold", "traps"))
    # The last column stands for what a query does not have.
    is_found = (np.pad(ranking.hits(ranked, rows), ((0, 0), (0, 1)), constant_values=True) for rows in (gold, wrong))
    first, first_wrong = (hit.argmax(axis=1) for hit in is_found)
    return {
        "MRR@10": ranking.mrr_at_k(ranked, gold, 10),
        "above": (first < first_wrong).astype(float),
        "R@3": ranking.accuracy_at_k(ranked, gold, 3),
        "V@3": ranking.accuracy_at_k(ranked, wrong, 3),
    }


def systems(model: Any, traps: TrapSet, penalties: Sequence[float]) -> Iterator[tuple[str, Any]]:
    """The vectors of the queries: by the plain encoder, then, for a Bool-BERT, by its parts one after the other."""
    texts = [query.text for query in traps.queries]
    bert: Any = bool_bert(model)
    if bert is None:
        yield "encoder", encode_inputs(model, texts, "query", 32)
        return
    yield "gates off", plain_vectors(model, texts)
    if bert.config.exclusion != "none":
        pooled: Any = twin_of(model)  # the same weights; its vector is only pooled
        bool_bert(pooled).composer.excludes = False  # type: ignore[union-attr]
        yield "attention alone", encode_inputs(pooled, texts, "query", 32)
    read_by = {"as the model is": encode_inputs(model, texts, "query", 32)}
    if bert.composer.has_penalty and any(query.rewrite for query in traps.queries):
        read_by["an LLM rewrites every query"] = rewritten_queries(model, traps)
    for name, queries in read_by.items():
        yield name, queries
        if bert.composer.has_penalty:
            own = penalty_of(bert)[0]
            yield from ((f"the same, penalty {weight}", stronger(queries, weight / own)) for weight in penalties)
    yield "one vector", encode_inputs(model, texts, "query", 32, one_vector=True)
    for weight in (0.0, 0.2, 0.4, 0.6):
        inputs = [{"text": text, "not_weight": weight} for text in texts]
        yield f"one vector, {weight}", encode_inputs(model, inputs, "query", 32, one_vector=True)


def plain_vectors(model: Any, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """The vectors of queries without their operators."""
    inputs = [{"text": text, "operators": OFF} for text in texts] if bool_bert(model) is not None else texts
    encoded = encode_inputs(model, inputs, "query", 64, one_vector=True)
    return encoded if encoded.ndim == 2 else encoded[:, 0]


def rewritten_queries(model: Any, traps: TrapSet) -> Any:
    """What an LLM says is wanted and excluded, each a text for the same encoder, with the model's own penalty."""
    import torch

    parts = [query.rewrite or (query.text, []) for query in traps.queries]
    texts = list(dict.fromkeys(text for wanted, excluded in parts for text in (wanted, *excluded)))
    vectors = dict(zip(texts, torch.from_numpy(plain_vectors(model, texts)), strict=True))
    wanted = torch.stack([vectors[text] for text, _ in parts])
    excluded = torch.stack([sum((vectors[text] for text in texts), torch.zeros_like(wanted[0])) for _, texts in parts])
    weight, above = penalty_of(bool_bert(model))
    penalty = torch.tensor([[weight * bool(texts), above] for _, texts in parts])
    return penalised_query(wanted.unsqueeze(1), excluded, penalty)


def penalty_of(bert: Any) -> tuple[float, float]:
    """What a Bool-BERT has learned: how strongly a document loses, and from which cosine with what is excluded on."""
    from torch.nn.functional import softplus

    return softplus(bert.composer.penalty).item(), bert.composer.penalty_above.item()


def stronger(queries: Any, times: float) -> Any:
    """Queries as `penalised_query` gives them, with their penalty multiplied."""
    queries = queries.copy() if isinstance(queries, np.ndarray) else queries.clone()
    queries[:, -1] *= times
    return queries


def show(traps: TrapSet, found: Mapping[str, PerQuery]) -> None:
    """Print a line for each system."""
    print(f"\n{traps.name}: {len(traps.queries)} queries, {len(traps.texts)} texts")
    rows = [[system, *map(number, means(values).values())] for system, values in found.items()]
    print(aligned(["", "MRR@10", "above trap", "R@3", "V@3"], rows))


def changed_queries(model: Any, plain: Any, data: str) -> tuple[list[str], int]:
    """The queries without OR and NOT whose vector is not the plain encoder's, and how many such queries there are."""
    if Path(data).is_dir():
        rows = pool_rows(Path(data), "queries", "text", "kind")
        asked = [row["text"] for row in rows if row["kind"] in ("plain", "and")]
    else:
        questions = named_task(data).questions
        asked = [question.text for question in questions if not {"or", "not"} & set(question.operators or ())]
    ours, theirs = (encode_inputs(encoder, asked, "query", 32, one_vector=True) for encoder in (model, plain))
    ours = ours if ours.ndim == 2 else ours[:, 0]
    changed = [text for text, one, other in zip(asked, ours, theirs, strict=True) if not np.array_equal(one, other)]
    return changed, len(asked)


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    model = load_encoder(args.model, device=args.device) if args.model else default_model(args.device).encoder
    figures: dict[str, Any] = {"arguments": asdict(args)}
    for folder in args.data:
        traps = read_trap_set(folder)
        documents = encode_inputs(model, traps.texts, "document", 32)
        found = {}
        for name, queries in systems(model, traps, args.penalties):
            found[name] = score_ranked(top_k(queries, documents, len(documents))[1], traps)
        show(traps, found)
        figures[traps.name] = {"systems": {name: means(values) for name, values in found.items()}}
    if args.unchanged:
        plain = load_encoder(args.plain, device=args.device, quiet=True)
        for data in args.unchanged:
            changed, asked = changed_queries(model, plain, data)
            figures[f"changed in {data}"] = {"queries": asked, "changed": changed}
            print(f"\n{data}: {len(changed)} of {asked} queries without OR and NOT have another vector")
            print("\n".join(f"  {text}" for text in changed))
    if args.output:
        write_json(args.output, figures)


if __name__ == "__main__":
    run_script(main)
