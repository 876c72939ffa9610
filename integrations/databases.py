"""A query as the native request of a vector database, which then obeys NOT and OR by itself.

    parts = encoder.encode_query_parts("films that are not westerns")
    client.query_points("films", **qdrant_query(parts, limit=10))

A document scores max_k v_k.d - w max(0, b.d - t): v_k are the vectors of what is wanted, b is what is excluded. Qdrant,
Elasticsearch, OpenSearch and pgvector compute that themselves. Milvus, LanceDB and others fetch candidates by v_k, and
`best` ranks them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from boolbert.core.checks import check_count, check_flags
from boolbert.core.errors import RetrievalError, needed
from boolbert.retrieval.evidence import unit_length
from boolbert.search.obey import EncodedTexts
from boolbert.sentence_boolbert import QueryParts

from .ranking import FETCH, query_parts

Parts = EncodedTexts | QueryParts


class Formula(NamedTuple):
    """The numbers of the formula. Nothing is excluded where `excluded` is None."""

    wanted: list[list[float]]
    excluded: list[float] | None
    weight: float
    above: float


def formula(parts: Parts) -> Formula:
    """The formula of a query's parts; where vectors are compared by their cosine, they have length 1."""
    vectors = query_parts(parts)
    wanted = (unit_length(vectors.search_vectors) if vectors.cosine else vectors.search_vectors).tolist()
    if vectors.excluded is None or vectors.penalty is None:
        return Formula(wanted, None, 0.0, 0.0)
    return Formula(wanted, unit_length(vectors.excluded).tolist(), *vectors.penalty)


def qdrant_query(
    parts: Parts, *, limit: int = 10, fetch: int = FETCH, query_filter: Any = None, using: str | None = None
) -> dict[str, Any]:
    """Arguments for `client.query_points(collection, **...)`; the collection compares by cosine or dot product.

    using: the vector's name, where it has one. fetch: candidates of each vector; what is excluded counts against those
    documents that are among its own nearest.
    """
    check_count("limit", limit)
    check_count("fetch", fetch)
    with needed("qdrant-client", "qdrant"):
        from qdrant_client import models

    query = formula(parts)

    def nearest(vector: list[float]) -> Any:
        return models.Prefetch(query=vector, limit=max(fetch, limit), filter=query_filter, using=using)

    def largest(a: Any, b: Any) -> Any:  # max(a, b) = (a + b + |a - b|) / 2: older servers have no max
        distance = models.AbsExpression(abs=models.SumExpression(sum=[a, models.NegExpression(neg=b)]))
        return models.MultExpression(mult=[0.5, models.SumExpression(sum=[a, b, distance])])

    names = [f"$score[{row}]" for row in range(len(query.wanted))]
    defaults: dict[str, Any] = dict.fromkeys(names, -1.0)  # what is only near to what is excluded stands last
    score: Any = names[0]
    for name in names[1:]:
        score = largest(score, name)
    prefetch = [nearest(vector) for vector in query.wanted]
    if query.excluded is not None:
        near = f"$score[{len(prefetch)}]"
        prefetch.append(nearest(query.excluded))
        defaults[near] = -1.0
        loss = largest(models.SumExpression(sum=[near, -query.above]), 0.0)
        score = models.SumExpression(sum=[score, models.MultExpression(mult=[-query.weight, loss])])
    return {"prefetch": prefetch, "query": models.FormulaQuery(formula=score, defaults=defaults), "limit": limit}


def elasticsearch_query(
    parts: Parts,
    field: str = "vector",
    *,
    size: int = 10,
    filters: Sequence[Mapping[str, Any]] = (),
    text_field: str | None = None,
    opensearch: bool = False,
) -> dict[str, Any]:
    """The body of a search, as JSON: all documents that pass the filters are scored by the formula.

    text_field: leave out documents in whose text the excluded words stand; then those that deny them are missing too.
    opensearch: the same for OpenSearch, which names a field in another way.
    """
    check_count("size", size)
    check_flags(opensearch=opensearch)
    if not query_parts(parts).cosine:
        raise RetrievalError("Elasticsearch allows no score below 0, which dot products may have: use a cosine model")
    if text_field is not None and not isinstance(parts, EncodedTexts):
        raise RetrievalError("text_field needs the excluded words, which the parts of an encoder of `obey` have")
    query = formula(parts)
    column = f"doc['{_name(field)}']" if opensearch else f"'{_name(field)}'"
    # Each vector needs a call of its own: Elasticsearch binds a call to the first vector it gets.
    terms = [f"cosineSimilarity(params.wanted_{row}, {column})" for row in range(len(query.wanted))]
    source = terms[0]
    params: dict[str, Any] = {f"wanted_{row}": vector for row, vector in enumerate(query.wanted)}
    for term in terms[1:]:
        source = f"Math.max({source}, {term})"
    if query.excluded is not None:
        source += f" - params.weight * Math.max(0.0, cosineSimilarity(params.excluded, {column}) - params.above)"
        params |= {"excluded": query.excluded, "weight": query.weight, "above": query.above}
    conditions: dict[str, Any] = {"filter": [*filters, {"exists": {"field": field}}]}
    if text_field is not None and isinstance(parts, EncodedTexts):
        conditions["must_not"] = [{"match_phrase": {text_field: text}} for text in parts.excluded]
    params["shift"] = 1.0 + query.weight  # no score may be below 0
    script = {"source": f"params.shift + {source}", "params": params}
    return {"size": size, "query": {"script_score": {"query": {"bool": conditions}, "script": script}}}


def pgvector_sql(
    parts: Parts,
    table: str,
    *,
    id: str = "id",
    vector: str = "embedding",
    limit: int = 10,
    fetch: int = FETCH,
    where: str = "TRUE",
) -> tuple[str, dict[str, Any]]:
    """A SELECT of the table's columns and `score`, best first, and its parameters, as psycopg takes them.

    where: a condition in SQL; its own parameters are added to those that are returned. Its values never stand in it.
    """
    check_count("limit", limit)
    check_count("fetch", fetch)
    query = formula(parts)
    sign, similarity = ("<=>", "1 - (") if query_parts(parts).cosine else ("<#>", "-(")
    table, id, vector = _name(table), _name(id), _name(vector)
    params: dict[str, Any] = {f"wanted_{row}": str(one) for row, one in enumerate(query.wanted)}
    distances = [f"{vector} {sign} %({name})s::vector" for name in params]
    candidates = " UNION ".join(
        f"SELECT * FROM (SELECT {id} FROM {table} WHERE {where} ORDER BY {distance} LIMIT %(fetch)s) AS near_{row}"  # nosec B608
        for row, distance in enumerate(distances)
    )
    score = f"GREATEST({', '.join(f'{similarity}{distance})' for distance in distances)})"
    if query.excluded is not None:
        score += f" - %(weight)s * GREATEST(0, 1 - ({vector} <=> %(excluded)s::vector) - %(above)s)"
        params |= {"excluded": str(query.excluded), "weight": query.weight, "above": query.above}
    sql = (
        f"SELECT {table}.*, {score} AS score FROM {table} WHERE {id} IN ({candidates}) "  # nosec B608
        "ORDER BY score DESC LIMIT %(limit)s"
    )
    return sql, {**params, "fetch": max(fetch, limit), "limit": limit}


def milvus_search(
    parts: Parts, *, field: str = "vector", fetch: int = FETCH, filter: str = "", output_fields: Sequence[str] = ()
) -> dict[str, Any]:
    """Arguments for `client.search(collection, **...)`. It finds candidates; rank them with `best`, since Milvus
    cannot subtract what is excluded."""
    check_count("fetch", fetch)
    fields = [field, *(name for name in output_fields if name != field)]
    wanted = formula(parts).wanted
    return {"data": wanted, "anns_field": field, "limit": fetch, "filter": filter, "output_fields": fields}


def best(parts: Parts, rows: Iterable[Any], k: int = 10, *, id: str = "id", vector: str = "vector") -> list[Any]:
    """The k best of the rows that a database has found, each a mapping with an id and its vector; each id once."""
    check_count("k", k)
    # As numbers 5000.0 and 5000.00 are equal; as ids they are two.
    found = list({(row[id], str(row[id])): row for row in rows}.values())
    if not found:
        return []
    scores = parts.scores(np.array([row[vector] for row in found], dtype=np.float32))
    return [found[row] for row in np.argsort(-scores, kind="stable")[:k]]


def _name(name: str) -> str:
    """A table's or column's name, which goes into the request as it is.

    >>> _name("shop.films")
    'shop.films'
    """
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name, re.ASCII):
        raise RetrievalError(f"the name {name!r} must be letters, digits and _ , such as shop.films")
    return name
