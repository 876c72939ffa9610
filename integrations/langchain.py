"""LangChain: a retriever that obeys NOT and OR over any vector store, and embeddings whose queries are one vector.

encoder = obey(store.embeddings)
BoolRetriever(vectorstore=store, embeddings=encoder, k=10).invoke("hotels without a pool")
"""

from typing import Any

from boolbert.core.errors import needed

from .ranking import FETCH, fetch, plain_reasons, rank

with needed("langchain-core", "langchain"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import Field


class BoolEmbeddings(Embeddings):
    """Queries as one vector that obeys, documents as the embedder's own. Alternatives of OR share the vector."""

    def __init__(self, encoder: Any):
        self.encoder = encoder

    def embed_query(self, text: str) -> list[float]:
        return self.encoder.encode_query(text).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.encode_document(texts).tolist()


class BoolRetriever(BaseRetriever):
    """Fetches documents by what a query wants, and returns the k best by what they say.

    embeddings: an encoder, whose document vectors the store holds. fetch: documents that the store is asked for.
    search_kwargs: go to the store's `similarity_search_by_vector` as they are, such as its filter. A document's
    metadata gets its "relevance_score" and "reasons": the clauses that speak for and against it.
    """

    vectorstore: VectorStore
    embeddings: Any
    k: int = Field(default=10, ge=1)
    fetch: int = Field(default=FETCH, ge=1)
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        def search(vector: list[float]) -> list[Document]:
            count = max(self.fetch, self.k)
            return self.vectorstore.similarity_search_by_vector(vector, k=count, **self.search_kwargs)

        found = fetch(self.embeddings, query, search, key=lambda one: one.id or one.page_content)
        best = []
        for one in rank(self.embeddings, query, [one.page_content for one in found], self.k):
            why = {"relevance_score": one.score, "reasons": plain_reasons(one)}
            best.append(found[one.row].model_copy(update={"metadata": {**found[one.row].metadata, **why}}))
        return best
