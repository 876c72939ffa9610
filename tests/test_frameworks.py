"""LangChain, LlamaIndex and Haystack return what `boolbert search` does. Needs them: `make test-frameworks`."""

import asyncio
import json
import sys
from importlib.util import find_spec

import pytest
from framework_fixtures import HOTELS, QUERIES, bag_of_words

from boolbert import obey
from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.integrations.ranking import obeying, rank
from boolbert.search.obey import ObeyingEncoder

PACKAGES = {"langchain": "langchain_core", "llama_index": "llama_index", "haystack": "haystack"}
POOLS = ["Hotel with pool.", "Hotel. There is no pool.", "Book about war."]
AT_SEA = [text for text in HOTELS if "sea" in text]
ALL = 1000


@pytest.fixture(autouse=True)
def all_are_read(monkeypatch):
    """A retriever ranks what its store has found, and `rank` all texts: alike only where each reads all of its own."""
    monkeypatch.setitem(ObeyingEncoder.rerank.__kwdefaults__, "read", ALL)


@pytest.fixture(scope="module")
def encoder():
    return obey(bag_of_words, HOTELS)


def needs(framework, *packages):
    missing = [name for name in (PACKAGES[framework], *packages) if find_spec(name) is None]
    if missing:
        pytest.skip(f"NOT TESTED: {framework}, because {', '.join(missing)} is not installed; make test-frameworks")


def langchain_store(kind, encoder):
    """A store of each kind, and its filter for what lies by the sea."""
    from langchain_core.vectorstores import InMemoryVectorStore

    from boolbert.integrations.langchain import BoolEmbeddings

    embeddings, metadatas = BoolEmbeddings(encoder), [{"sea": "sea" in text} for text in HOTELS]
    if kind == "in memory":
        store = InMemoryVectorStore.from_texts(HOTELS, embeddings, metadatas)
        return store, {"filter": lambda document: document.metadata["sea"]}
    if kind == "FAISS":
        from langchain_community.vectorstores import FAISS

        store = FAISS.from_texts(HOTELS, embeddings, metadatas)
        return store, {"filter": {"sea": True}, "fetch_k": len(HOTELS)}
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import models

    store = QdrantVectorStore.from_texts(HOTELS, embeddings, metadatas, location=":memory:")
    condition = models.FieldCondition(key="metadata.sea", match=models.MatchValue(value=True))
    return store, {"filter": models.Filter(must=[condition])}


def langchain_search(encoder):
    from boolbert.integrations.langchain import BoolRetriever

    retriever = BoolRetriever(vectorstore=langchain_store("in memory", encoder)[0], embeddings=encoder)

    def search(query):
        return [(one.page_content, one.metadata["relevance_score"]) for one in retriever.invoke(query)]

    return search


def llama_index_of(encoder):
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode

    from boolbert.integrations.llama_index import BoolEmbedding

    nodes = [
        TextNode(
            text=text, metadata={"place": text.split(".")[0].split("hotel ")[1]}, excluded_embed_metadata_keys=["place"]
        )
        for text in HOTELS
    ]
    return VectorStoreIndex(nodes, embed_model=BoolEmbedding(encoder))


def llama_index_search(encoder):
    from boolbert.integrations.llama_index import BoolRetriever

    retriever = BoolRetriever(llama_index_of(encoder), encoder)
    return lambda query: [(one.node.get_content(), one.score) for one in retriever.retrieve(query)]


def haystack_search(encoder):
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from boolbert.integrations.haystack import BoolRanker, BoolTextEmbedder

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    vectors = obeying(encoder).encode_document(HOTELS).tolist()
    store.write_documents(
        [Document(content=text, embedding=vector) for text, vector in zip(HOTELS, vectors, strict=True)]
    )
    pipeline = Pipeline()
    pipeline.add_component("embedder", BoolTextEmbedder(encoder))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=100))
    pipeline.add_component("ranker", BoolRanker(encoder))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")

    def search(query):
        found = pipeline.run({"embedder": {"text": query}, "ranker": {"query": query}})["ranker"]["documents"]
        return [(document.content, document.score) for document in found]

    return search


SEARCH = {"langchain": langchain_search, "llama_index": llama_index_search, "haystack": haystack_search}


@pytest.fixture(scope="module")
def searched(pretrained_bert, tmp_path_factory):
    """The encoder of an index made to obey, and what `boolbert search` gives there for each query.

    The encoder is the first layer of all-MiniLM-L6-v2.
    """
    from sentence_transformers import SentenceTransformer

    from boolbert.search import BoolSearcher, build_index, load_model

    folder = tmp_path_factory.mktemp("search")
    SentenceTransformer(pretrained_bert, device="cpu", config_kwargs={"num_hidden_layers": 1}).save(
        str(folder / "model")
    )
    model = load_model(folder / "model", device="cpu")
    lines = (json.dumps({"title": "", "text": text}) + "\n" for text in HOTELS)
    (folder / "hotels.jsonl").write_text("".join(lines), encoding="utf-8")
    index = build_index(folder / "hotels.jsonl", folder / "index", model, progress=False, float32=True)
    searcher = BoolSearcher(model, index)
    return obey(model.encoder, HOTELS), {
        query: [(hit.text, hit.score) for hit in searcher.search(query, k=10, read=ALL)] for query in QUERIES
    }


@pytest.mark.parametrize("framework", PACKAGES)
def test_all_frameworks_return_the_ten_of_search(framework, searched):
    needs(framework)
    encoder, expected = searched
    search = SEARCH[framework](encoder)
    for query in QUERIES:
        found = search(query)
        assert [text for text, _ in found] == [text for text, _ in expected[query]]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected[query]], abs=1e-3)


def test_what_search_returns_obeys(searched):
    """The ten are worth comparing with."""
    _, expected = searched
    assert all("has a pool" not in text for text, _ in expected["hotels without a pool"][:8])


@pytest.mark.parametrize("framework", PACKAGES)
def test_all_frameworks_make_an_embedder_obey_that_does_not(framework):
    needs(framework)
    plain, obeyed = (SEARCH[framework](one)(QUERIES[0]) for one in (bag_of_words, obey(bag_of_words)))
    assert plain == obeyed


@pytest.mark.parametrize("kind", ["in memory", "FAISS", "Qdrant"])
def test_langchain_retrieves_from_any_store_and_passes_its_filter_on(kind, encoder):
    needs("langchain", *{"FAISS": ["langchain_community"], "Qdrant": ["langchain_qdrant"]}.get(kind, []))
    from boolbert.integrations.langchain import BoolRetriever

    store, by_the_sea = langchain_store(kind, encoder)
    for query in QUERIES:
        retriever = BoolRetriever(vectorstore=store, embeddings=encoder, k=5)
        expected = [HOTELS[one.row] for one in rank(encoder, query, HOTELS, 5)]
        assert [document.page_content for document in retriever.invoke(query)] == expected
        assert [document.page_content for document in asyncio.run(retriever.ainvoke(query))] == expected
        near = BoolRetriever(vectorstore=store, embeddings=encoder, k=5, search_kwargs=by_the_sea).invoke(query)
        assert [document.page_content for document in near] == [
            AT_SEA[one.row] for one in rank(encoder, query, AT_SEA, 5)
        ]


def test_langchain_says_why(encoder):
    needs("langchain")
    from langchain_core.vectorstores import InMemoryVectorStore

    from boolbert.integrations.langchain import BoolEmbeddings, BoolRetriever

    store = InMemoryVectorStore.from_texts(POOLS, BoolEmbeddings(encoder))
    first = BoolRetriever(vectorstore=store, embeddings=encoder, k=1).invoke("hotel without pool")[0]
    assert first.page_content == POOLS[1]
    assert ("denied", "There is no pool.") in [
        (reason["says"], reason["clause"]) for reason in first.metadata["reasons"]
    ]
    json.dumps(first.metadata)
    assert "reasons" not in store.similarity_search("a hotel", k=1)[0].metadata  # the store's own stay as they are


def test_langchain_takes_embeddings_that_do_not_obey_and_k_where_its_users_say_it(encoder):
    needs("langchain")
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    from boolbert.integrations.langchain import BoolEmbeddings, BoolRetriever

    class Plain(Embeddings):
        def embed_query(self, text):
            return bag_of_words([text])[0].tolist()

        def embed_documents(self, texts):
            return bag_of_words(texts).tolist()

    store = InMemoryVectorStore.from_texts(POOLS, Plain())
    for embeddings in (Plain(), BoolEmbeddings(obey(Plain())), bag_of_words):
        retriever = BoolRetriever(vectorstore=store, embeddings=embeddings, search_kwargs={"k": 1})
        assert [one.page_content for one in retriever.invoke("hotel without pool")] == [POOLS[1]]
    with pytest.raises(ValueError, match="k is 2, and 1 in search_kwargs; give it once"):
        BoolRetriever(vectorstore=store, embeddings=encoder, k=2, search_kwargs={"k": 1})
    with pytest.raises(ValueError, match="a dict is no embedder"):
        BoolRetriever(vectorstore=store, embeddings={})


def test_langchain_keeps_documents_of_one_text_without_ids(encoder):
    needs("langchain")
    from langchain_core.documents import Document
    from langchain_core.vectorstores import VectorStore

    from boolbert.integrations.langchain import BoolRetriever

    class WithoutIds(VectorStore):
        def similarity_search_by_vector(self, embedding, k=4, **kwargs):
            return [Document("A pool.", metadata={"hotel": hotel}) for hotel in ("a", "b", "b")]

        def similarity_search(self, query, k=4, **kwargs):
            raise NotImplementedError

        from_texts = classmethod(lambda cls, texts, embedding, **kwargs: cls())

    found = BoolRetriever(vectorstore=WithoutIds(), embeddings=encoder).invoke("a pool or a garden")
    assert sorted(one.metadata["hotel"] for one in found) == ["a", "b", "b"]


def test_fewer_are_fetched_than_there_are(encoder):
    needs("langchain")
    from boolbert.integrations.langchain import BoolRetriever

    store, _ = langchain_store("in memory", encoder)
    query = "a hotel by the sea or in the hills"
    found = BoolRetriever(vectorstore=store, embeddings=encoder, k=3, fetch=4).invoke(query)
    assert {"sea" in document.page_content or "hills" in document.page_content for document in found} == {True}
    assert len(found) == 3


def test_embeddings_of_frameworks_are_embedders(encoder):
    """What `obey` takes, with the real classes."""
    needs("langchain", "llama_index")
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from llama_index.core import MockEmbedding

    for embedder in (DeterministicFakeEmbedding(size=16), MockEmbedding(embed_dim=16)):
        parts = obey(embedder).encode_query_parts("hotels without a pool")
        assert parts.excluded == ("pool",)
        assert parts.scores(obey(embedder).encode_document(HOTELS[:3])).shape == (3,)


def test_one_vector_for_langchain_and_llama_index(encoder):
    needs("langchain", "llama_index")
    from boolbert.integrations.langchain import BoolEmbeddings
    from boolbert.integrations.llama_index import BoolEmbedding

    query, vector = "hotels without a pool", encoder.encode_query("hotels without a pool").tolist()
    assert BoolEmbeddings(encoder).embed_query(query) == vector
    assert BoolEmbedding(encoder).get_query_embedding(query) == vector
    assert asyncio.run(BoolEmbedding(encoder).aget_query_embedding(query)) == vector
    documents = encoder.encode_document(HOTELS[:2]).tolist()
    assert BoolEmbeddings(encoder).embed_documents(HOTELS[:2]) == documents
    assert BoolEmbedding(encoder).get_text_embedding_batch(HOTELS[:2]) == documents


def test_llama_index_filters_and_ranks_what_others_found(encoder):
    needs("llama_index")
    from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

    from boolbert.integrations.llama_index import BoolPostprocessor, BoolRetriever

    index, query = llama_index_of(encoder), "hotels without a pool"
    filters = MetadataFilters(filters=[ExactMatchFilter(key="place", value="by the sea")])
    found = BoolRetriever(index, encoder, k=3, filters=filters).retrieve(query)
    expected = [AT_SEA[one.row] for one in rank(encoder, query, AT_SEA, 3)]
    assert [one.node.get_content() for one in found] == expected
    assert [
        one.node.get_content()
        for one in asyncio.run(BoolRetriever(index, encoder, k=3, filters=filters).aretrieve(query))
    ] == expected
    nodes = index.as_retriever(similarity_top_k=40).retrieve("hotels")
    best = BoolPostprocessor(encoder, k=2).postprocess_nodes(nodes, query_str=query)
    assert {one.node.get_content() for one in best} == {HOTELS[one.row] for one in rank(encoder, query, HOTELS, 2)}
    with pytest.raises(RetrievalError, match="query_str"):
        BoolPostprocessor(encoder).postprocess_nodes(nodes)


def test_haystack_ranks_as_many_as_it_is_asked_for(encoder):
    needs("haystack")
    from haystack import Document

    from boolbert.integrations.haystack import BoolRanker

    ranker, documents = BoolRanker(encoder, top_k=2), [Document(content=text) for text in POOLS]
    assert len(ranker.run("hotel without pool", documents)["documents"]) == 2
    (first,) = ranker.run("hotel without pool", documents, top_k=1)["documents"]
    assert first.content == POOLS[1]
    assert "denied" in [reason["says"] for reason in first.meta["reasons"]]
    assert ranker.run("hotels", [])["documents"] == []
    with pytest.raises(RetrievalError, match="at least 1"):
        ranker.run("hotels", documents, top_k=0)


def test_a_bool_bert_ranks_by_its_own_parts(searcher):
    """Without `obey`: its vectors exclude by themselves."""
    encoder, query = searcher.model.encoder, "films but not about war"
    texts = ["films", "films about war", "books", "a and b"]
    scores = encoder.encode_query_parts(query).scores(encoder.encode_document(texts))
    found = rank(encoder, query, texts, 3)
    assert [one.row for one in found] == (-scores).argsort()[:3].tolist()
    assert [one.score for one in found] == pytest.approx(sorted(scores, reverse=True)[:3])
    assert rank(encoder, query, [], 3) == []


@pytest.mark.parametrize("framework", PACKAGES)
def test_a_missing_framework_is_told_in_one_line(framework, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGES[framework]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, PACKAGES[framework], None)
    module = f"boolbert.integrations.{framework}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(BoolBertError, match=rf"is not installed: pip install 'boolbert\[{framework}\]'"):
        __import__(module)
