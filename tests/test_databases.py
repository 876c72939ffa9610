"""A query as the request of a database gives the scores of `encode_query_parts`, computed by the database."""

import json
import re
import sqlite3
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
from framework_fixtures import HOTELS, QUERIES, bag_of_words
from store_fixtures import new_database, skip_without

from boolbert import obey
from boolbert.core.errors import RetrievalError
from boolbert.integrations.databases import best, elasticsearch_query, milvus_search, pgvector_sql, qdrant_query
from boolbert.retrieval.evidence import unit_length
from boolbert.sentence_boolbert import QueryParts

ALL = range(len(HOTELS))
SEA = [row for row, text in enumerate(HOTELS) if "sea" in text]


@pytest.fixture(scope="module")
def encoder():
    return obey(bag_of_words, HOTELS)


@pytest.fixture(scope="module")
def vectors(encoder):
    return encoder.encode_document(HOTELS)


@pytest.fixture(scope="module")
def parts_of(encoder, vectors):
    """A function: a query's parts, with a threshold so low that what is excluded counts for some of the hotels."""

    def made(query):
        parts = encoder.encode_query_parts(query)
        if parts.vectors.excluded is None:
            return parts
        cosines = np.sort(unit_length(vectors) @ unit_length(parts.vectors.excluded))
        return replace(parts, vectors=parts.vectors._replace(penalty=(0.7, float(cosines[-8:-6].mean()))))

    return made


def check(found, parts, vectors, allowed=ALL):
    """found: {row: score}, best first."""
    expected = parts.scores(vectors)
    ranked = sorted(allowed, key=lambda row: -expected[row])[: len(found)]
    assert [expected[row] for row in found] == pytest.approx([expected[row] for row in ranked], abs=1e-5)
    assert list(found.values()) == pytest.approx([expected[row] for row in found], abs=1e-4)
    assert set(found) <= set(allowed)


@pytest.fixture(scope="module")
def qdrant(vectors):
    client_module = pytest.importorskip("qdrant_client", reason="NOT TESTED: Qdrant, qdrant-client is missing")
    models, client = client_module.models, client_module.QdrantClient(":memory:")
    client.create_collection(
        "hotels", vectors_config=models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    )
    points = enumerate(zip(vectors.tolist(), HOTELS, strict=True))
    client.upsert(
        "hotels",
        [models.PointStruct(id=row, vector=one, payload={"sea": "sea" in text}) for row, (one, text) in points],
    )
    return client


@pytest.mark.parametrize("query", QUERIES)
def test_qdrant_computes_the_formula(qdrant, parts_of, vectors, query):
    from qdrant_client import models

    parts = parts_of(query)
    found = qdrant.query_points("hotels", **qdrant_query(parts)).points
    assert len(found) == 10
    check({point.id: point.score for point in found}, parts, vectors)
    at_sea = models.Filter(must=[models.FieldCondition(key="sea", match=models.MatchValue(value=True))])
    found = qdrant.query_points("hotels", **qdrant_query(parts, limit=5, query_filter=at_sea)).points
    check({point.id: point.score for point in found}, parts, vectors, SEA)


def test_qdrant_takes_what_an_excluded_vector_alone_has_found_for_the_worst(qdrant, parts_of, vectors):
    """With few candidates, documents that only what is excluded has found stand below all that is wanted."""
    parts = parts_of("hotels without a pool")
    found = qdrant.query_points("hotels", **qdrant_query(parts, limit=12, fetch=12)).points
    wanted = set(np.argsort(-(unit_length(vectors) @ unit_length(parts.vectors.search_vectors[0])))[:12].tolist())
    assert {point.id for point in found} == wanted


def elasticsearch_scores(body, vectors, field):
    """What Elasticsearch's script gives for each document; Painless and Python read the expression alike."""
    script = body["query"]["script_score"]["script"]
    found = []
    for vector in unit_length(vectors):

        def cosine(query, name, vector=vector):
            assert name == field
            return float(unit_length(np.array(query)) @ vector)

        names = {"Math": SimpleNamespace(max=max), "params": SimpleNamespace(**script["params"]), "doc": {"v": "v"}}
        found.append(eval(script["source"], {"cosineSimilarity": cosine, **names}))
    return np.array(found)


@pytest.mark.parametrize("opensearch", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_elasticsearch_computes_the_formula_above_zero(parts_of, vectors, query, opensearch):
    parts = parts_of(query)
    scores = elasticsearch_scores(elasticsearch_query(parts, "v", opensearch=opensearch), vectors, "v")
    assert scores - scores[0] == pytest.approx(parts.scores(vectors) - parts.scores(vectors)[0], abs=1e-5)
    worst = elasticsearch_scores(elasticsearch_query(parts, "v"), -vectors, "v")
    assert min(*scores, *worst) >= 0
    source = elasticsearch_query(parts, "v", opensearch=opensearch)["query"]["script_score"]["script"]["source"]
    assert ("doc['v']" in source) == opensearch


def test_elasticsearch_filters_and_leaves_out_words(encoder):
    parts = encoder.encode_query_parts("hotels without a pool")
    year = {"range": {"year": {"gt": 1960}}}
    body = elasticsearch_query(parts, "v", size=3, filters=[year], text_field="text")
    assert body["size"] == 3
    assert body["query"]["script_score"]["query"]["bool"] == {
        "filter": [year, {"exists": {"field": "v"}}],
        "must_not": [{"match_phrase": {"text": "pool"}}],
    }


def in_sqlite(rows, sql, params, folder):
    """With a function for pgvector's operator."""

    def distance(*texts):
        one, other = (unit_length(np.array(json.loads(text))) for text in texts)
        return 1 - float(one @ other)

    database = sqlite3.connect(":memory:")
    database.create_function("distance", 2, distance)
    database.create_function("GREATEST", -1, lambda *numbers: max(numbers))
    database.execute("CREATE TABLE hotels (id INTEGER, embedding TEXT, sea INTEGER)")
    database.executemany("INSERT INTO hotels VALUES (?, ?, ?)", rows)
    sql = re.sub(r"embedding <=> %\((\w+)\)s::vector", r"distance(embedding, :\1)", sql)
    return database.execute(re.sub(r"%\((\w+)\)s", r":\1", sql), params).fetchall()


def in_postgres(rows, sql, params, folder):
    skip_without("postgres")
    import psycopg

    with psycopg.connect(new_database()) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE hotels (id int, embedding vector, sea bool)")
        connection.cursor().executemany("INSERT INTO hotels VALUES (%s, %s::vector, %s)", rows)
        return connection.execute(sql, params).fetchall()


@pytest.mark.parametrize("run", [in_sqlite, in_postgres])
@pytest.mark.parametrize("query", QUERIES)
def test_pgvector_sql_computes_the_formula(parts_of, vectors, query, run, tmp_path):
    parts = parts_of(query)
    sql, params = pgvector_sql(parts, "hotels", limit=5, where="sea = %(sea)s")
    rows = [(row, str(one.tolist()), row in SEA) for row, one in enumerate(vectors)]
    found = run(rows, sql, {**params, "sea": True}, tmp_path)
    assert len(found) == 5
    check({row[0]: row[-1] for row in found}, parts, vectors, SEA)


def test_milvus_finds_candidates_and_best_ranks_them(parts_of, vectors, tmp_path):
    pymilvus = pytest.importorskip("pymilvus", reason="NOT TESTED: Milvus, pymilvus is missing")
    pytest.importorskip("milvus_lite", reason="NOT TESTED: Milvus, milvus-lite is missing")
    client = pymilvus.MilvusClient(str(tmp_path / "hotels.db"))
    client.create_collection("hotels", dimension=vectors.shape[1], metric_type="COSINE")
    rows = [{"id": row, "vector": one, "sea": row in SEA} for row, one in enumerate(vectors.tolist())]
    client.insert("hotels", rows)
    for query in QUERIES:
        parts = parts_of(query)
        answers = client.search("hotels", **milvus_search(parts, filter="sea == true", output_fields=["sea"]))
        found = best(parts, (hit for answer in answers for hit in answer), k=5)
        scores = parts.scores(vectors)
        check({hit["id"]: scores[hit["id"]] for hit in found}, parts, vectors, SEA)
        assert len(found) == 5
    client.close()


def test_best_takes_ids_that_are_equal_as_numbers_for_two(encoder, vectors):
    """And what two searches have found for one."""
    rows = [{"id": Decimal(id), "vector": one} for id, one in zip(("5000.0", "5000.00", "7"), vectors, strict=False)]
    found = best(encoder.encode_query_parts("hotels"), [*rows, *rows], k=10)
    assert sorted(str(row["id"]) for row in found) == ["5000.0", "5000.00", "7"]


def test_parts_of_a_bool_bert_have_no_texts_and_dot_products_no_threshold(vectors):
    bool_bert = QueryParts(vectors[:2], vectors[0], vectors[2], vectors[:2], (0.5, 0.3), cosine=True)
    scores = elasticsearch_scores(elasticsearch_query(bool_bert, "v"), vectors, "v")
    assert scores - scores[0] == pytest.approx(bool_bert.scores(vectors) - bool_bert.scores(vectors)[0], abs=1e-5)
    with pytest.raises(RetrievalError, match="excluded words"):
        elasticsearch_query(bool_bert, text_field="text")
    dot = QueryParts(vectors[:1], vectors[0], vectors[2], vectors[:1])
    assert "embedding <#> %(wanted_0)s::vector" in pgvector_sql(dot, "hotels")[0]
    with pytest.raises(RetrievalError, match="below 0"):
        elasticsearch_query(dot)


@pytest.mark.parametrize("name", ["hotels; DROP TABLE hotels", "a b", "", "1a", "a'"])
def test_names_that_are_none_are_refused(encoder, name):
    parts = encoder.encode_query_parts("hotels")
    with pytest.raises(RetrievalError, match="the name"):
        pgvector_sql(parts, name)
    with pytest.raises(RetrievalError, match="the name"):
        elasticsearch_query(parts, name)
