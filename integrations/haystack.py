"""Haystack: a text embedder whose vectors obey NOT and OR, and a ranker.

pipeline.add_component("embedder", BoolTextEmbedder(encoder))
pipeline.add_component("ranker", BoolRanker(encoder, top_k=10))
"""

from dataclasses import replace
from typing import Any

from boolbert.core.checks import check_count
from boolbert.core.errors import needed

from .ranking import KEPT, clauses_of, obeying, plain_reasons, rank

with needed("haystack-ai", "haystack"):
    from haystack import Document, component


@component
class BoolTextEmbedder:
    """A query as one vector that obeys, for any embedding retriever. Alternatives of OR share the vector."""

    def __init__(self, encoder: Any):
        self.encoder = obeying(encoder)

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": self.encoder.encode_query(text).tolist()}


@component
class BoolClauses:
    """Documents that keep what they say in their meta, for a document store: `BoolRanker` then embeds nothing but the
    query. They have to be split already."""

    def __init__(self, encoder: Any):
        self.encoder = obeying(encoder)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        kept = zip(documents, clauses_of(self.encoder, [one.content or "" for one in documents]), strict=True)
        return {"documents": [replace(one, meta={**one.meta, KEPT: clauses}) for one, clauses in kept]}


@component
class BoolRanker:
    """The best of the documents that any retriever has found, by what they say.

    A document's meta gets "reasons": the clauses that speak for and against it.
    """

    def __init__(self, encoder: Any, top_k: int = 10):
        check_count("top_k", top_k)
        self.encoder, self.top_k = obeying(encoder), top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, Any]:
        if top_k is not None:
            check_count("top_k", top_k)
        texts = [one.content or "" for one in documents]
        kept = [one.meta.get(KEPT) for one in documents]
        found = []
        for one in rank(self.encoder, query, texts, self.top_k if top_k is None else top_k, kept):
            document = documents[one.row]
            meta = {name: value for name, value in document.meta.items() if name != KEPT}
            meta["reasons"] = plain_reasons(one)
            found.append(replace(document, score=one.score, meta=meta))
        return {"documents": found}
