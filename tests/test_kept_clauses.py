"""Documents that keep their clauses in a store's metadata: ranked as before, and nothing is embedded but the query."""

import warnings

import numpy as np
import pytest
from framework_fixtures import HOTELS, QUERIES, bag_of_words
from test_frameworks import all_are_read, needs  # noqa: F401 - a fixture for every test here, too

from boolbert import obey
from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import RetrievalError
from boolbert.integrations.ranking import KEPT

FETCHED = 30
NOISE = 0.02
TEXTS = HOTELS[:FETCHED]


class Counting:
    """An embedder that knows what it was asked for."""

    def __init__(self):
        self.texts = []

    def __call__(self, texts):
        self.texts += texts
        return bag_of_words(texts)


@pytest.fixture
def embed():
    return Counting()


@pytest.fixture
def encoder(embed):
    return obey(embed)


def another(embed):
    """An encoder that knows nothing yet, as in a new process."""
    embed.texts.clear()
    return obey(embed)


def assert_in_order(rows, fresh):
    """The rows are the best by the scores of what was embedded afresh. Kept vectors have one byte a number, so that
    equals may change places."""
    scores = {one.row: one.score for one in fresh}
    assert len(set(rows)) == len(rows)
    expected = sorted(scores.values(), reverse=True)[: len(rows)]
    assert [scores[row] for row in rows] == pytest.approx(expected, abs=NOISE)


def test_kept_clauses_rank_and_explain_as_fresh_ones_do(encoder, embed):
    kept = encoder.keep_clauses(TEXTS)
    later = another(embed)
    for query in QUERIES:
        fresh = encoder.rerank(query, TEXTS)
        embed.texts.clear()
        found = later.rerank(query, TEXTS, 10, kept=kept)
        assert not set(embed.texts) & set(TEXTS)
        assert len(embed.texts) < 10  # the query, its parts, and one text that tells which encoder it is
        assert_in_order([one.row for one in found], fresh)
        known = {one.row: one for one in fresh}
        assert [one.score for one in found] == pytest.approx([known[one.row].score for one in found], abs=NOISE)
        assert [one.reasons for one in found] == [known[one.row].reasons for one in found]


def test_the_first_query_embeds_no_document_again_that_went_into_the_store(encoder, embed):
    """In the same process; and few made sentences tell what "near" means."""
    vectors = encoder.encode_document(TEXTS)
    clauses = {text[one.start : one.end] for text in TEXTS for one in split_clauses(text)} - set(TEXTS)
    embed.texts.clear()
    vectors *= 0  # the caller's own
    found = encoder.rerank(QUERIES[0], TEXTS)
    assert not set(embed.texts) & set(TEXTS)
    assert clauses <= set(embed.texts)
    assert len(embed.texts) - len(clauses) < 150
    assert_in_order([one.row for one in found], another(embed).rerank(QUERIES[0], TEXTS))


def test_documents_whose_clauses_are_kept_are_embedded_once(encoder, embed):
    """`store.add_documents` embeds them after `with_clauses`."""
    encoder.keep_clauses(TEXTS)
    embed.texts.clear()
    np.testing.assert_array_equal(encoder.encode_document(TEXTS), bag_of_words(TEXTS))
    assert embed.texts == []
    vectors = encoder.encode_document(TEXTS[:2])
    vectors *= 0  # the caller's own
    np.testing.assert_array_equal(encoder.encode_document(TEXTS[:2]), bag_of_words(TEXTS[:2]))
    np.testing.assert_array_equal(encoder.encode_document([TEXTS[0], "new"]), bag_of_words([TEXTS[0], "new"]))


def test_what_was_not_kept_or_has_changed_is_embedded(encoder, embed):
    kept = encoder.keep_clauses(TEXTS)
    texts = [*TEXTS[:-1], "A hotel that has moved. It has no pool."]
    fresh = encoder.rerank(QUERIES[0], texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = another(embed).rerank(QUERIES[0], texts, kept=[*kept[:-1], None])
    assert_in_order([one.row for one in some], fresh)
    assert texts[-1] in embed.texts
    with pytest.warns(UserWarning, match="the clauses of 1 of 30 documents were kept of other texts"):
        changed = another(embed).rerank(QUERIES[0], texts, kept=kept)
    assert_in_order([one.row for one in changed], fresh)


@pytest.mark.parametrize(
    "other", [lambda texts: bag_of_words(texts)[:, :7], lambda texts: bag_of_words(texts)[:, ::-1]]
)
def test_clauses_of_another_encoder_are_one_line(encoder, other):
    """Of vectors of another size, and of the same."""
    kept = obey(other).keep_clauses(TEXTS[:2])
    with pytest.raises(RetrievalError, match="clauses were kept by another encoder than this one; keep them anew"):
        encoder.rerank(QUERIES[0], TEXTS[:2], kept=kept)


def test_damaged_clauses_are_one_line_and_those_of_others_are_none(encoder):
    (kept,) = encoder.keep_clauses(TEXTS[:1])
    for damaged in (kept[:40], "boolbert:no base 64!", "boolbert:e30="):
        with pytest.raises(RetrievalError, match="cannot be read; keep them again"):
            encoder.rerank(QUERIES[0], TEXTS[:1], kept=[damaged])
    with pytest.raises(RetrievalError, match="1 texts, and what was kept of 2; give one for each, or None"):
        encoder.rerank(QUERIES[0], TEXTS[:1], kept=[kept, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for foreign in ("", "v1", {"a": 1}, 7, float("nan")):
            assert encoder.rerank(QUERIES[0], TEXTS[:1], kept=[foreign])[0].row == 0


@pytest.mark.parametrize("size", [1e-6, 1e9])
def test_long_and_short_vectors_are_kept(size):
    encoder = obey(lambda texts: size * bag_of_words(texts))
    found = encoder.rerank(QUERIES[0], TEXTS, kept=encoder.keep_clauses(TEXTS))
    assert_in_order([one.row for one in found], encoder.rerank(QUERIES[0], TEXTS))


def test_no_texts_have_no_clauses(encoder):
    assert encoder.keep_clauses([]) == []
    assert encoder.rerank("hotels", [""], kept=encoder.keep_clauses([""]))[0].row == 0


def langchain_found(encoder, later, embed):
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    from boolbert.integrations.langchain import BoolEmbeddings, BoolRetriever, with_clauses

    with pytest.raises(RetrievalError, match="takes a list of documents or texts, got one text"):
        with_clauses(TEXTS[0], encoder)
    assert with_clauses(TEXTS[:2], encoder) == with_clauses(
        [Document(page_content=text) for text in TEXTS[:2]], encoder
    )
    store = InMemoryVectorStore(BoolEmbeddings(encoder))
    store.add_documents(with_clauses([Document(page_content=text, metadata={"n": 1}) for text in TEXTS], encoder))
    embed.texts.clear()
    found = BoolRetriever(vectorstore=store, embeddings=later, k=5).invoke(QUERIES[0])
    assert all(one.metadata.keys() == {"n", "relevance_score", "reasons"} for one in found)
    return [one.page_content for one in found]


def llama_index_found(encoder, later, embed):
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import MetadataMode, TextNode

    from boolbert.integrations.llama_index import BoolEmbedding, BoolRetriever, with_clauses

    plain = [TextNode(text=text, metadata={"place": "here"}, excluded_embed_metadata_keys=["place"]) for text in TEXTS]
    nodes = with_clauses(with_clauses(plain, encoder), encoder)
    assert nodes[0].excluded_embed_metadata_keys == ["place", KEPT]
    assert KEPT not in plain[0].metadata
    index = VectorStoreIndex(nodes, embed_model=BoolEmbedding(encoder))
    embed.texts.clear()
    found = BoolRetriever(index, later, k=5).retrieve(QUERIES[0])
    assert all(KEPT not in one.node.metadata for one in found)
    assert all(KEPT not in node.get_content(MetadataMode.LLM) for node in nodes)
    return [one.node.get_content() for one in found]


def haystack_found(encoder, later, embed):
    from haystack import Document

    from boolbert.integrations.haystack import BoolClauses, BoolRanker

    documents = BoolClauses(encoder).run([Document(content=text, meta={"n": 1}) for text in TEXTS])["documents"]
    embed.texts.clear()
    found = BoolRanker(later, top_k=5).run(QUERIES[0], documents)["documents"]
    assert all(one.meta.keys() == {"n", "reasons"} for one in found)
    return [one.content for one in found]


@pytest.mark.parametrize(
    ("framework", "found_by"),
    [("langchain", langchain_found), ("llama_index", llama_index_found), ("haystack", haystack_found)],
)
def test_a_framework_embeds_nothing_but_the_query(framework, found_by, encoder, embed):
    needs(framework)
    later = another(embed)
    found = found_by(encoder, later, embed)
    assert not set(embed.texts) & set(TEXTS)
    assert len(embed.texts) < 20  # its parts twice, to fetch and to rank, and that one text
    assert len(found) == 5
    assert_in_order([TEXTS.index(text) for text in found], encoder.rerank(QUERIES[0], TEXTS))


def test_an_encoder_without_clauses_cannot_keep_them():
    needs("haystack")
    from boolbert.integrations.haystack import BoolClauses

    class Bool:
        def encode_query_parts(self, query):
            raise AssertionError("not asked")

    with pytest.raises(RetrievalError, match="clauses are kept by an encoder of `obey`; a Bool ranks by vectors"):
        BoolClauses(Bool()).run([])
