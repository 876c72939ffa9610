"""LlamaIndex: a retriever that obeys NOT and OR over any vector index, a node postprocessor, and an embedding.

encoder = obey(embed_model)
BoolRetriever(index, encoder, k=10).retrieve("hotels without a pool")
"""

from collections.abc import Iterable
from typing import Any

from boolbert.core.checks import check_count
from boolbert.core.errors import RetrievalError, needed

from .ranking import FETCH, KEPT, clauses_of, fetch, obeying, rank

with needed("llama-index-core", "llama_index"):
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
    from pydantic import Field


class BoolEmbedding(BaseEmbedding):
    """Queries as one vector that obeys, documents as the embedder's own. Alternatives of OR share the vector."""

    encoder: Any = Field(exclude=True)

    def __init__(self, encoder: Any, **settings: Any):
        super().__init__(encoder=obeying(encoder), **settings)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.encoder.encode_query(query).tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.encode_document(texts).tolist()


def with_clauses(nodes: Iterable[BaseNode], encoder: Any) -> list[BaseNode]:
    """Nodes that keep what they say in their metadata: a `BoolRetriever` then embeds nothing but the query. Split
    documents before, with a node parser. Neither an embedding nor a language model gets to see it."""
    own = [_without_clauses(node.model_copy(deep=True)) for node in nodes]
    for node, clauses in zip(own, clauses_of(encoder, list(map(_text, own))), strict=True):
        node.metadata[KEPT] = clauses
        for keys in (node.excluded_embed_metadata_keys, node.excluded_llm_metadata_keys):
            keys += [] if KEPT in keys else [KEPT]
    return own


def _without_clauses(node: BaseNode) -> BaseNode:
    metadata = {name: value for name, value in node.metadata.items() if name != KEPT}
    return node.model_copy(update={"metadata": metadata})


def _text(node: BaseNode) -> str:
    """The text that is embedded."""
    return node.get_content(metadata_mode=MetadataMode.EMBED)


class BoolPostprocessor(BaseNodePostprocessor):
    """Keeps the k best of the nodes that any retriever has found, by what they say."""

    encoder: Any = Field(exclude=True)
    k: int = 10

    def __init__(self, encoder: Any, k: int = 10, **settings: Any):
        check_count("k", k)
        super().__init__(encoder=obeying(encoder), k=k, **settings)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise RetrievalError("the query is missing: call postprocess_nodes(nodes, query_str=...)")
        kept = [one.node.metadata.get(KEPT) for one in nodes]
        best = rank(self.encoder, query_bundle.query_str, [_text(one.node) for one in nodes], self.k, kept)
        return [NodeWithScore(node=_without_clauses(nodes[one.row].node), score=one.score) for one in best]


class BoolRetriever(BaseRetriever):
    """Fetches nodes by what a query wants, and returns the k best by what they say.

    encoder: its document vectors are those of the index. fetch: nodes that the index is asked for. options: those of
    `index.as_retriever`, such as filters.
    """

    def __init__(self, index: VectorStoreIndex, encoder: Any, k: int = 10, fetch: int = FETCH, **options: Any):
        check_count("k", k)
        check_count("fetch", fetch)
        super().__init__()
        self._retriever = index.as_retriever(similarity_top_k=max(fetch, k), **options)
        self._best = BoolPostprocessor(encoder, k)
        self._encoder = self._best.encoder

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str

        def search(vector: list[float]) -> list[NodeWithScore]:
            return self._retriever.retrieve(QueryBundle(query, embedding=vector))

        found = fetch(self._encoder, query, search, key=lambda one: one.node.node_id)
        return self._best.postprocess_nodes(found, query_bundle)
