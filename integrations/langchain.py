"""LangChain: a retriever that obeys NOT and OR over any vector store, and embeddings whose queries are one vector.

encoder = obey(store.embeddings)
BoolRetriever(vectorstore=store, embeddings=encoder, k=10).invoke("hotels without a pool")
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from boolbert.core.checks import check_count
from boolbert.core.errors import RetrievalError, needed

from .ranking import FETCH, KEPT, clauses_of, fetch, obeying, plain_reasons, rank

with needed("langchain-core", "langchain"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import Field, field_validator, model_validator


class BoolEmbeddings(Embeddings):
    """Queries as one vector that obeys, documents as the embedder's own. Alternatives of OR share the vector."""

    def __init__(self, encoder: Any):
        self.encoder = obeying(encoder)

    def embed_query(self, text: str) -> list[float]:
        return self.encoder.encode_query(text).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.encode_document(texts).tolist()


def with_clauses(documents: Iterable[Document | str], encoder: Any) -> list[Document]:
    """Documents, or texts, that keep what they say in their metadata, for `store.add_documents`: a `BoolRetriever` then
    embeds nothing but the query. They have to be split already."""
    if isinstance(documents, str):
        raise RetrievalError("with_clauses takes a list of documents or texts, got one text")
    own = [Document(page_content=one) if isinstance(one, str) else one for one in documents]
    kept = zip(own, clauses_of(encoder, [one.page_content for one in own]), strict=True)
    return [one.model_copy(update={"metadata": {**one.metadata, KEPT: clauses}}) for one, clauses in kept]


class BoolRetriever(BaseRetriever):
    """Fetches documents by what a query wants, and returns the k best by what they say.

    embeddings: an encoder, whose document vectors the store holds; embeddings that do not obey are made to. fetch:
    documents that the store is asked for. search_kwargs: go to the store's `similarity_search_by_vector` as they are,
    such as its filter; a "k" among them is the retriever's own. A document's metadata gets its "relevance_score" and
    "reasons": the clauses that speak for and against it.
    """

    vectorstore: VectorStore
    embeddings: Any
    k: int = 10
    fetch: int = FETCH
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, **given: Any):
        kwargs = given.get("search_kwargs")
        for values, names in ((given, ("k", "fetch")), (kwargs if isinstance(kwargs, dict) else {}, ("k",))):
            for name in names:
                if name in values:
                    check_count(name, values[name])  # pydantic takes "3" and True for numbers
        super().__init__(**given)

    @model_validator(mode="before")
    @classmethod
    def _own_k(cls, given: Any) -> Any:
        """LangChain's users say k in `search_kwargs`."""
        kwargs = given.get("search_kwargs") if isinstance(given, dict) else None
        if not isinstance(kwargs, dict) or "k" not in kwargs:
            return given
        if given.get("k", kwargs["k"]) != kwargs["k"]:
            raise ValueError(f"k is {given['k']}, and {kwargs['k']} in search_kwargs; give it once")
        rest = {name: value for name, value in kwargs.items() if name != "k"}
        return {**given, "k": kwargs["k"], "search_kwargs": rest}

    @field_validator("embeddings")
    @classmethod
    def _obeying(cls, embeddings: Any) -> Any:
        return obeying(embeddings)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        def search(vector: list[float]) -> Iterator[tuple[Hashable, Document]]:
            count = max(self.fetch, self.k)
            return _named(self.vectorstore.similarity_search_by_vector(vector, k=count, **self.search_kwargs))

        found = [document for _, document in fetch(self.embeddings, query, search, key=lambda one: one[0])]
        best = []
        kept = [one.metadata.get(KEPT) for one in found]
        for one in rank(self.embeddings, query, [one.page_content for one in found], self.k, kept):
            metadata = {name: value for name, value in found[one.row].metadata.items() if name != KEPT}
            why = {"relevance_score": one.score, "reasons": plain_reasons(one)}
            best.append(found[one.row].model_copy(update={"metadata": {**metadata, **why}}))
        return best


def _named(documents: Iterable[Document]) -> Iterator[tuple[Hashable, Document]]:
    """Each document with its id; one without by what it holds, and the how manieth of that it is."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in documents:
        content = one.page_content, repr(one.metadata)
        counts[content] += not one.id
        yield one.id or (*content, counts[content]), one
