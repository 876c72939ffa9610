"""What a caller gives by mistake is one line that names it, at every public function: no TypeError from inside, and no
text that counts as True."""

from importlib.util import find_spec

import numpy as np
import pytest
from framework_fixtures import HOTELS, bag_of_words
from store_fixtures import small_about

from boolbert import obey, says, upgrade
from boolbert.core.errors import BoolBertError
from boolbert.data.own import OwnDocuments, Passages, make_queries
from boolbert.integrations import databases, ranking
from boolbert.retrieval.stores import FileStore, copy_documents, index_documents, open_store
from boolbert.search import BoolSearcher, build_index, explain, load_model
from boolbert.search.calibrating import calibrate
from boolbert.serve.engine import Engine

QUERY = "hotels without a pool"
WRONG = {
    "count": [1.5, "3", None, True, -1, [1], float("nan"), 10**30],
    "whole": [1.5, "3", None, True, [1], float("nan")],
    "flag": ["false", "", 0, 1, None, []],
    "number": ["0.5", True, -0.1, float("nan"), float("inf"), [1], 1j],
    "list": [7, "abc", True, 1.5, b"abc", {"a": 1}],
    "filter": [5, True, ["year > 1"], {}, b"year > 1"],
}
MAY_BE_NONE = ("k of rerank", "kept", "top_k of run", "epochs", "k of rank")  # which then means all, or the usual


@pytest.fixture(scope="module")
def encoder():
    return obey(bag_of_words, HOTELS)


@pytest.fixture(scope="module")
def parts(encoder):
    return encoder.encode_query_parts(QUERY)


@pytest.fixture(scope="module")
def model():
    return load_model(device="cpu")


@pytest.fixture(scope="module")
def searcher(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("arguments") / "index"
    films = [{"id": str(row), "text": f"films about war {row}", "year": row} for row in range(5)]
    return BoolSearcher(model, build_index(OwnDocuments(films, progress=False), folder, model, progress=False))


@pytest.fixture(scope="module")
def calls(encoder, parts, model, searcher, tmp_path_factory):
    """Functions of one argument, each by what that argument is called."""
    folder = tmp_path_factory.mktemp("made")
    documents = OwnDocuments([{"id": "a", "text": "films"}], id="id", progress=False)
    store = open_store(folder / "store")
    store.create(small_about())
    vectors = np.ones((1, 4), np.float32)
    rows = [{"id": row, "vector": vector} for row, vector in enumerate(encoder.encode_document(HOTELS[:3]))]

    def search(name):
        return lambda value: searcher.search("films", **{name: value})

    def index(name):
        return lambda value: index_documents(documents, open_store(folder / "other"), model, **{name: value})

    return {
        "k": search("k"),
        "k of an explanation": lambda value: explain(searcher, "films", value),
        "k of rows": lambda value: searcher.rows("films", value),
        "k of rows_by_words": lambda value: searcher.rows_by_words("films", value),
        "k of rerank": lambda value: encoder.rerank(QUERY, HOTELS, value),
        "k of rank": lambda value: ranking.rank(encoder, QUERY, HOTELS, value),
        "k of best": lambda value: databases.best(parts, rows, value),
        "k of no rows": lambda value: databases.best(parts, [], value),
        "k of a store": lambda value: store.search(vectors, value),
        "read": search("read"),
        "read of rerank": lambda value: encoder.rerank(QUERY, HOTELS, read=value),
        "read of rerank without texts": lambda value: encoder.rerank(QUERY, [], read=value),
        "read of rows": lambda value: searcher.rows("films", 3, read=value),
        "not_weight": search("not_weight"),
        "violations": search("violations"),
        "excluded": search("excluded"),
        "a number in excluded": lambda value: searcher.search("films", excluded=[value]),
        "operators": search("operators"),
        "where": search("where"),
        "where of a store": lambda value: store.count(value),
        "evidence": search("evidence"),
        "numbers": search("numbers"),
        "evidence of rows": lambda value: searcher.rows("films", 3, evidence=value),
        "kept": lambda value: encoder.rerank(QUERY, HOTELS, kept=value),
        "texts": lambda value: encoder.rerank(QUERY, value),
        "texts of says": lambda value: says(value, "a pool"),
        "texts of keep_clauses": encoder.keep_clauses,
        "texts of obey": lambda value: obey(bag_of_words, value),
        "onnx": lambda value: BoolSearcher(model, searcher.index, onnx=value),
        "progress": lambda value: BoolSearcher(model, searcher.index, progress=value),
        "progress of calibrate": lambda value: calibrate(searcher, [], progress=value),
        "evidence of build_index": lambda value: build_index(documents, folder / "built", model, evidence=value),
        "float32 of build_index": lambda value: build_index(documents, folder / "built", model, float32=value),
        "progress of build_index": lambda value: build_index(documents, folder / "built", model, progress=value),
        "batch": index("batch"),
        "evidence of index_documents": index("evidence"),
        "float32 of index_documents": index("float32"),
        "progress of index_documents": index("progress"),
        "batch of copy_documents": lambda value: copy_documents(
            FileStore(searcher.index.folder), open_store(folder / "copy"), batch=value
        ),
        "evidence of copy_documents": lambda value: copy_documents(
            FileStore(searcher.index.folder), open_store(folder / "copy"), evidence=value
        ),
        "follow_links": lambda value: OwnDocuments(["a text"], follow_links=value),
        "progress of OwnDocuments": lambda value: OwnDocuments(["a text"], progress=value),
        "words of Passages": lambda value: Passages(words=value),
        "overlap of Passages": lambda value: Passages(overlap=value),
        "queries of make_queries": lambda value: make_queries(documents, folder / "queries", queries=value),
        "seed of make_queries": lambda value: make_queries(documents, folder / "queries", seed=value),
        "epochs": lambda value: upgrade(model.encoder, epochs=value),
        "seed of upgrade": lambda value: upgrade(model.encoder, seed=value),
        "lite": lambda value: upgrade(model.encoder, lite=value),
        "rate": lambda value: Engine(lambda: None, rate=value),
        "limit of Qdrant": lambda value: databases.qdrant_query(parts, limit=value),
        "fetch of Qdrant": lambda value: databases.qdrant_query(parts, fetch=value),
        "size of Elasticsearch": lambda value: databases.elasticsearch_query(parts, size=value),
        "opensearch": lambda value: databases.elasticsearch_query(parts, opensearch=value),
        "limit of pgvector": lambda value: databases.pgvector_sql(parts, "films", limit=value),
        "fetch of pgvector": lambda value: databases.pgvector_sql(parts, "films", fetch=value),
        "fetch of Milvus": lambda value: databases.milvus_search(parts, fetch=value),
    }


KINDS = {
    "count": (
        *("k", "k of an explanation", "k of rows", "k of rows_by_words", "k of rerank", "k of rank", "k of best"),
        *("k of no rows", "k of a store", "read", "read of rerank", "read of rerank without texts", "read of rows"),
        *("batch", "batch of copy_documents", "words of Passages", "overlap of Passages", "queries of make_queries"),
        *("epochs", "rate", "limit of Qdrant", "fetch of Qdrant"),
        *("size of Elasticsearch", "limit of pgvector", "fetch of pgvector", "fetch of Milvus"),
    ),
    "whole": ("seed of make_queries", "seed of upgrade", "a number in excluded"),
    "flag": (
        *("evidence", "numbers", "evidence of rows", "onnx", "progress", "progress of calibrate", "lite"),
        *("evidence of build_index", "float32 of build_index", "progress of build_index", "opensearch"),
        *("evidence of index_documents", "float32 of index_documents", "progress of index_documents"),
        *("evidence of copy_documents", "follow_links", "progress of OwnDocuments"),
    ),
    "number": ("not_weight", "violations"),
    "filter": ("where", "where of a store"),
    "list": (*("kept", "excluded", "operators", "texts", "texts of says", "texts of keep_clauses", "texts of obey"),),
}


def check(call, name, value):
    with pytest.raises(BoolBertError) as error:
        call(value)
    said, own = str(error.value), name.partition(" of ")[0].removeprefix("a ")
    assert own in said
    assert "must be" in said or "a filter is a text such as 'year > 1990'" in said
    assert "\n" not in said
    assert len(said) < 200


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_what_is_wrong_is_named(calls, kind, name):
    if "Qdrant" in name:
        pytest.importorskip("qdrant_client", reason="NOT TESTED: Qdrant, qdrant-client is missing")
    for value in WRONG[kind]:
        if value is not None or name not in MAY_BE_NONE:
            check(calls[name], name, value)


def test_what_is_called_is_what_is_tested(calls):
    assert sorted(calls) == sorted(name for names in KINDS.values() for name in names)


def test_numbers_of_numpy_are_numbers(searcher, encoder, parts):
    assert len(searcher.search("films", np.int64(2), evidence=np.True_, read=np.int32(0))) == 2
    assert len(searcher.search("films but not about war", 2, not_weight=np.float32(0.5))) == 2
    assert len(encoder.rerank(QUERY, HOTELS, np.int16(3), read=np.int64(0))) == 3
    assert databases.milvus_search(parts, fetch=np.int64(7))["limit"] == 7


def needs(package):
    if find_spec(package) is None:
        pytest.skip(f"NOT TESTED: {package} is not installed; make test-frameworks")


@pytest.mark.parametrize("value", [value for value in WRONG["count"] if value is not None])
def test_langchain(encoder, value):
    needs("langchain_core")
    from langchain_core.vectorstores import InMemoryVectorStore

    from boolbert.integrations.langchain import BoolEmbeddings, BoolRetriever

    store = InMemoryVectorStore(BoolEmbeddings(encoder))
    for name in ("k", "fetch"):
        check(lambda own: BoolRetriever(vectorstore=store, embeddings=encoder, **{name: own}), name, value)  # noqa: B023
    check(lambda own: BoolRetriever(vectorstore=store, embeddings=encoder, search_kwargs={"k": own}), "k", value)


@pytest.mark.parametrize("value", WRONG["count"])
def test_llama_index(encoder, value):
    needs("llama_index")
    from llama_index.core import VectorStoreIndex

    from boolbert.integrations.llama_index import BoolEmbedding, BoolPostprocessor, BoolRetriever

    index = VectorStoreIndex([], embed_model=BoolEmbedding(encoder))
    check(lambda own: BoolRetriever(index, encoder, k=own), "k", value)
    check(lambda own: BoolRetriever(index, encoder, fetch=own), "fetch", value)
    check(lambda own: BoolPostprocessor(encoder, own), "k", value)


@pytest.mark.parametrize("value", WRONG["count"])
def test_haystack(encoder, value):
    needs("haystack")
    from haystack import Document

    from boolbert.integrations.haystack import BoolRanker

    check(lambda own: BoolRanker(encoder, own), "top_k", value)
    if value is not None:
        check(lambda own: BoolRanker(encoder).run(QUERY, [Document(content="a")], own), "top_k", value)
        check(lambda own: BoolRanker(encoder).run(QUERY, [], own), "top_k", value)
