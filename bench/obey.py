"""What `obey` makes of any encoder: its own whole query, one vector that excludes, the query's parts, and evidence.

    python bench/obey.py --model DIR_OR_HUB_ID --data boolquestions_not excluir_dev
    python bench/obey.py --model DIR_OR_HUB_ID --data boolquestions_not --evidence    # reranks the whole pool

The data folders and the figures are those of eval/exclusion.py. Nothing is trained, and no label is looked at.
"""

import argparse

import numpy as np

from boolbert import obey
from boolbert.core.errors import run_script
from boolbert.eval.exclusion import TrapSet, read_trap_set, score_ranked, show
from boolbert.retrieval.models import load_encoder
from boolbert.search.obey import ObeyingEncoder


def rankings(encoder: ObeyingEncoder, plain: np.ndarray, traps: TrapSet) -> dict[str, np.ndarray]:
    """The whole pool (Q, N) by each system. plain: the vectors of the whole queries."""
    documents = encoder.encode_document(traps.texts)
    queries = [encoder.encode_query_parts(query.text) for query in traps.queries]
    scores = {
        "whole query": plain @ documents.T,
        "obey, one vector": np.stack([query.vectors.vectors[0] for query in queries]) @ documents.T,
        "obey, parts": np.stack([query.scores(documents) for query in queries]),
    }
    return {name: np.argsort(-values, axis=1, kind="stable") for name, values in scores.items()}


def reranked(encoder: ObeyingEncoder, traps: TrapSet) -> np.ndarray:
    """The whole pool by what the texts say, clause by clause."""
    found = [[hit.row for hit in encoder.rerank(query.text, traps.texts)] for query in traps.queries]
    everything = range(len(traps.texts))  # what was left out stands last
    return np.array([[*rows, *sorted(set(everything) - set(rows))] for rows in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder or Hub id; all-MiniLM-L6-v2 if not given")
    parser.add_argument("--data", nargs="+", required=True, help="folders with a corpus and queries")
    parser.add_argument("--evidence", action="store_true", help="also rank by what the texts say, in some minutes")
    args = parser.parse_args()
    model = load_encoder(args.model)
    encoder = obey(model)
    print(f"near: a cosine above {encoder.near:.2f}")
    for folder in args.data:
        traps = read_trap_set(folder)
        plain = model.encode_query([query.text for query in traps.queries])
        ranked = rankings(encoder, plain, traps)
        if args.evidence:
            ranked["obey, with evidence"] = reranked(encoder, traps)
        show(traps, {name: score_ranked(rows, traps) for name, rows in ranked.items()})


if __name__ == "__main__":
    run_script(main)
