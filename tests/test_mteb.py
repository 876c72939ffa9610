"""The evaluation harness mteb reads a published folder as any other model. Needs it: `make test-frameworks`."""

from importlib.util import find_spec
from itertools import combinations

import numpy as np
import pytest
from sentence_helpers import DOCUMENTS, QUERIES
from sentence_transformers import SentenceTransformer

from boolbert.hub.assemble import assemble
from boolbert.sentence_boolbert import load_dual_encoder

if find_spec("mteb") is None:
    pytest.skip("NOT TESTED: mteb is not installed; make test-frameworks", allow_module_level=True)

PAIRS = [(queries, documents) for queries in combinations(QUERIES, 2) for documents in combinations(DOCUMENTS, 2)]


def small_task():
    """mteb's own NevIR, with pairs of queries of which each wants another one of two documents."""
    import mteb
    from datasets import Dataset

    class Small(type(mteb.get_task("NevIR"))):
        def load_data(self, **_):
            queries, corpus, relevant, ranked = [], [], {}, {}
            for number, pair in enumerate(PAIRS):
                documents = [f"{number}_doc{side}" for side in (1, 2)]
                for side, (query, text) in enumerate(zip(*pair, strict=True), start=1):
                    name = f"{number}_q{side}"
                    queries.append({"id": name, "text": query})
                    corpus.append({"id": documents[side - 1], "text": text, "title": ""})
                    relevant[name], ranked[name] = {documents[side - 1]: 1}, documents
            split = {"queries": Dataset.from_list(queries), "corpus": Dataset.from_list(corpus)}
            self.dataset = {"default": {"test": {**split, "relevant_docs": relevant, "top_ranked": ranked}}}
            self.data_loaded = True

    return Small()


def paired_accuracy(encode_query, encode_document):
    """How many pairs are right, one text at a time."""
    right = []
    for queries, documents in PAIRS:
        own, texts = (
            [encode([text])[0] for text in each]
            for encode, each in zip((encode_query, encode_document), (queries, documents), strict=True)
        )
        scores = np.array(own) @ np.array(texts).T
        right.append(scores[0, 0] > scores[0, 1] and scores[1, 1] > scores[1, 0])
    return float(np.mean(right))


def test_mteb_measures_a_published_folder_as_it_is(tmp_path, run_dir):
    """Queries go to the query encoder: read as documents, other pairs would be right."""
    import mteb

    (tmp_path / "published").mkdir()
    assemble(run_dir, tmp_path / "published")
    model = SentenceTransformer(str(tmp_path / "published"), trust_remote_code=True, device="cpu")
    (found,) = mteb.evaluate(model, small_task(), cache=None, co2_tracker=False, show_progress_bar=False).task_results
    own = load_dual_encoder(run_dir)
    expected = paired_accuracy(own.encode_query, own.encode_document)
    assert found.get_score() == pytest.approx(expected)
    assert 0 < expected != paired_accuracy(own.encode_document, own.encode_document)
