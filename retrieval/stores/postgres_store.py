"""Postgres with pgvector as a store: a table for each collection, of which the database finds the candidates.

boolbert_collections   of each collection what is known of it, and how many documents and words it has
NAME                   a row for each document: its texts, fields, vector, words with their counts, and clauses
NAME_words             how many documents hold each word

A document is one row, and rows are written in transactions: whole or not there. Writers of a collection lock its line
in `boolbert_collections` while they write a batch, so that any number of them may add documents at the same time.
"""

import json
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from boolbert.core.errors import RetrievalError, optional
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import DocumentEvidence
from boolbert.retrieval.evidence_bytes import clauses_in_bytes, evidence_from_bytes
from boolbert.retrieval.records import Record, is_id
from boolbert.retrieval.words import K1, B

from .base import WAIT, Array, StoreHit
from .postgres_connection import PostgresConnection
from .remote import (
    AskedWord,
    FoundDocument,
    RemoteStore,
    Statistics,
    in_batches,
    storable,
    storable_fields,
    with_fields,
    word_key,
)
from .where import Filter, fitted_filter, sql_condition

KNOWN = "boolbert_collections"
LONGEST_NAME = 50  # bytes; Postgres allows 63, and the table of words has a longer name
MOST_INDEXED = 2000  # numbers of a vector that pgvector's HNSW takes
MOST_HELD = 10_000  # documents that are looked through for the words of a condition; the rarest words come first
_LOCK = 0x626F6F6C  # held while tables are made
_ROWS = 500  # of one transaction
_COLUMNS = "id, document, digest, title, text, fields"
_INSERT = """
INSERT INTO {table} AS old (id, document, digest, title, text, fields, words, length, clauses, vector)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::vector)
ON CONFLICT (id) DO UPDATE SET (document, digest, title, text, fields, words, length, clauses, vector) =
(excluded.document, excluded.digest, excluded.title, excluded.text, excluded.fields, excluded.words, excluded.length,
 excluded.clauses, excluded.vector)
"""
_BY_WORDS = """
SELECT id FROM {table} WHERE words ?| %s::text[]{passing}
ORDER BY (
    SELECT sum(asked.weight * own.count / (own.count + %s * (1 - %s + %s * length / %s)))
    FROM unnest(%s::text[], %s::float8[]) AS asked(word, weight),
    LATERAL (SELECT (words ->> asked.word)::float8) AS own(count)
) DESC NULLS LAST, id LIMIT %s
"""


class PostgresStore(RemoteStore):
    """A collection in a Postgres database."""

    _holder = "table"

    def __init__(self, uri: str, collection: str | None = None, *, wait: float = WAIT):
        super().__init__(uri, collection)
        if not 1 <= len(self.collection.encode(errors="replace")) <= LONGEST_NAME or not is_id(self.collection):
            raise RetrievalError(
                f"--collection {self.collection!r}: a name has 1 to {LONGEST_NAME} bytes and no control characters"
            )
        self._psycopg = optional("psycopg", "psycopg", "postgres")
        self._sql = optional("psycopg.sql", "psycopg", "postgres")
        self._uri, self._wait = uri, wait
        self._busy = threading.RLock()  # a connection does one thing at a time
        self._connection = PostgresConnection(uri, self._place, wait)

    @contextmanager
    def _transaction(self, what: str | None = "search") -> Iterator[Any]:
        """A cursor; what it has done is there when this ends, or nothing of it. what: for which limit of time."""
        with self._busy:
            if self._connection.closed:
                self._connection = PostgresConnection(self._uri, self._place, self._wait)
            with self._connection.transaction(self.name, what) as connection, connection.cursor(binary=True) as cursor:
                yield cursor

    def _named(self, text: str) -> Any:
        """SQL with the names of the collection's tables."""
        own = self.collection.replace("%", "%%")  # psycopg looks for parameters in names too
        names = {"table": own, "table_of_words": f"{own}_words", "neighbours": f"{own}_nearest", "known": KNOWN}
        return self._sql.SQL(text).format(**{key: self._sql.Identifier(name) for key, name in names.items()})

    def exists(self) -> bool:
        with self._transaction() as cursor:
            return self._line(cursor) is not None

    def _line(self, cursor: Any, lock: bool = False) -> Any:
        """What is known of the collection: about, documents, words, change; None where there is none."""
        if _one(cursor, "SELECT to_regclass(%s)::text", [KNOWN]) is None:
            return None
        text = "SELECT about, documents, words, change FROM {known} WHERE name = %s"
        return cursor.execute(self._named(text + " FOR UPDATE" * lock), [self.collection]).fetchone()

    def _locked(self, cursor: Any) -> Any:
        """The same, and no other process writes before this transaction ends."""
        line = self._line(cursor, lock=True)
        if line is None:
            raise self._missing()
        return line

    def _read_about(self) -> About:
        with self._transaction() as cursor:
            line, size = self._line(cursor), self._size(cursor)
        if line is None:
            raise self._missing() if size is None else self._not_ours()
        about = About.stored(line[0], f"{self.name}: its line in {KNOWN}", "index into a new collection")
        if size is None:
            raise RetrievalError(
                f"{self.name}: its table is gone; delete what is left of it: DELETE FROM {KNOWN} WHERE name = "  # nosec B608
                f"'{self.collection}'"
            )
        self._check_size(size, about)
        return about

    def _size(self, cursor: Any) -> int | None:
        """How many numbers the vectors of the collection's table have; -1 where it has none, None without a table."""
        found = "to_regclass(quote_ident(%s))"
        if _one(cursor, f"SELECT {found}::text", [self.collection]) is None:
            return None
        column = f"SELECT atttypmod FROM pg_attribute WHERE attrelid = {found} AND attname = 'vector'"  # nosec B608
        size = _one(cursor, column, [self.collection])
        return -1 if size is None else int(size)

    def _create(self, about: About) -> None:
        with self._busy:
            # Two who begin at once: one waits, and only then begins the transaction that sees what the other has made.
            with self._transaction("batch") as cursor:
                cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            try:
                with self._transaction("batch") as cursor:
                    is_there = self._line(cursor) is not None
                    if not is_there:
                        self._make_tables(cursor, about)
            finally:
                with self._transaction() as cursor:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
        if is_there:
            self.create(about)

    def _make_tables(self, cursor: Any, about: About) -> None:
        self._make_extension(cursor)
        for name in (self.collection, f"{self.collection}_words"):
            if _one(cursor, "SELECT to_regclass(quote_ident(%s))::text", [name]) is not None:
                raise self._not_ours()
        cursor.execute(
            self._named(
                "CREATE TABLE IF NOT EXISTS {known} (name text PRIMARY KEY, about jsonb NOT NULL, documents bigint NOT "
                "NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0, change bigint NOT NULL DEFAULT 0)"
            )
        )
        cursor.execute(
            self._named(
                'CREATE TABLE {table} (id text COLLATE "C" PRIMARY KEY, document text NOT NULL, digest text NOT NULL, '
                "title text NOT NULL, text text NOT NULL, fields jsonb NOT NULL, words jsonb, length int, clauses "
                f"bytea, vector vector({int(about.size)}) NOT NULL)"
            ),
            [],
        )
        cursor.execute(
            self._named('CREATE TABLE {table_of_words} (word text COLLATE "C" PRIMARY KEY, held bigint)'), []
        )
        for index in ("(document)", "(md5(id))", "USING gin (words)"):
            cursor.execute(self._named(f"CREATE INDEX ON {{table}} {index}"), [])
        line = [self.collection, self._json(asdict(with_fields(about, {})))]
        cursor.execute(self._named("INSERT INTO {known} (name, about) VALUES (%s, %s)"), line)

    def _make_extension(self, cursor: Any) -> None:
        errors = self._psycopg.errors
        remedy = "ask who keeps the database for: CREATE EXTENSION vector"
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except (errors.FeatureNotSupported, errors.UndefinedFile):
            remedy = "install it on the server: https://github.com/pgvector/pgvector"
        except errors.InsufficientPrivilege:
            pass
        else:
            return
        raise RetrievalError(f"{self._place}: has no pgvector, which finds neighbours; {remedy}") from None

    def note(self, about: About) -> None:
        with self._transaction(None) as cursor:  # an index may take hours
            told = with_fields(about, self._locked(cursor)[0]["fields"])
            cursor.execute(
                self._named("UPDATE {known} SET about = %s, change = change + 1 WHERE name = %s"),
                [self._json(asdict(told)), self.collection],
            )
            if about.complete and about.size <= MOST_INDEXED:  # made of all documents, which takes less time
                text = "CREATE INDEX IF NOT EXISTS {neighbours} ON {table} USING hnsw (vector vector_ip_ops)"
                cursor.execute(self._named(text), [])
        self._about = None

    def _json(self, value: Any) -> Any:
        return self._psycopg.types.json.Jsonb(value)

    def _add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        self.check_finite(vectors)
        for start in range(0, len(records), _ROWS):
            part = slice(start, start + _ROWS)
            own = [None] * len(records[part]) if evidence is None else evidence[part]
            rows = [self._row(*each) for each in zip(records[part], vectors[part], own, strict=True)]
            held = Counter(word for said in own if said is not None for word in said.words)
            length = sum(sum(said.words.values()) for said in own if said is not None)
            with self._transaction("batch") as cursor:
                self._locked(cursor)
                ids = [record.id for record in records[part]]
                old = self._named("SELECT words FROM {table} WHERE id = ANY(%s)")
                replaced = cursor.execute(old, [ids]).fetchall()
                cursor.executemany(self._named(_INSERT), rows)
                self._count_words(cursor, replaced, held, len(rows), length)

    def _row(self, record: Record, vector: Array, evidence: DocumentEvidence | None) -> list[Any]:
        texts = [record.id, record.document, record.digest, storable(record.title), storable(record.text)]
        said: list[Any] = [None, None, None]
        if evidence is not None:
            words = dict(evidence.words)
            said = [self._json(words), sum(words.values()), clauses_in_bytes(evidence)]
        return [*texts, self._json(storable_fields(record)), *said, _as_text(vector)]

    def _count_words(
        self, cursor: Any, gone: Sequence[Any], held: Counter[str], added: int = 0, length: int = 0
    ) -> None:
        """Write down how the collection has changed: rows that are gone, and what was added."""
        for (words,) in gone:
            if isinstance(words, dict):  # nothing is known of a row that another program has damaged
                held.subtract(list(words))  # each counts once
                length -= sum(count for count in words.values() if isinstance(count, int))
        changed = {word_key(word): count for word, count in held.items() if count}
        if changed:
            cursor.execute(
                self._named(
                    "INSERT INTO {table_of_words} AS old SELECT * FROM unnest(%s::text[], %s::bigint[]) "
                    "ON CONFLICT (word) DO UPDATE SET held = old.held + excluded.held"
                ),
                [list(changed), list(changed.values())],
            )
        if any(count < 0 for count in changed.values()):
            unused = "DELETE FROM {table_of_words} WHERE word = ANY(%s) AND held <= 0"
            cursor.execute(self._named(unused), [list(changed)])
        cursor.execute(
            self._named(
                "UPDATE {known} SET documents = documents + %s, words = words + %s, change = change + 1 WHERE name = %s"
            ),
            [added - len(gone), length, self.collection],
        )

    def _delete(self, ids: Sequence[str]) -> None:
        for part in in_batches(ids, _ROWS):
            with self._transaction("batch") as cursor:
                self._locked(cursor)
                text = "DELETE FROM {table} WHERE id = ANY(%s) RETURNING words"
                gone = cursor.execute(self._named(text), [part]).fetchall()
                if gone:
                    self._count_words(cursor, gone, Counter())

    def _known(self, documents: Collection[str], name: str) -> dict[str, str]:
        self.about()
        names = [id for id in documents if is_id(id)]
        text = f"SELECT id, coalesce({name}, id) FROM {{table}} WHERE id = ANY(%s) OR document = ANY(%s)"  # nosec B608
        return dict(self._rows(text, [names, names])) if names else {}

    def count(self, where: str | Filter | None = None) -> int:
        wanted = fitted_filter(where, self.about().fields)
        if wanted is None:
            return self.statistics().documents
        condition, values = sql_condition(wanted)
        return int(self._rows(f"SELECT count(*) FROM {{table}} WHERE {condition}", values)[0][0])  # nosec B608

    def ids(self) -> Iterator[str]:
        self.about()
        return (row[0] for row in self._rows("SELECT id FROM {table}", []))

    def records(self) -> Iterator[Record]:
        self.about()
        after = ""
        while rows := self._rows(  # nosec B608
            f"SELECT {_COLUMNS} FROM {{table}} WHERE id > %s ORDER BY id LIMIT %s",  # nosec B608
            [after, _ROWS],  # nosec B608
        ):
            yield from map(self._record, rows)
            after = rows[-1][0]

    def _rows(self, text: str, values: Sequence[Any], **settings: str) -> list[Any]:
        with self._transaction() as cursor:
            for name, value in settings.items():
                cursor.execute("SELECT set_config(%s, %s, true)", [name.replace("__", "."), value])
            rows: list[Any] = cursor.execute(self._named(text), list(values)).fetchall()
            return rows

    def _nearest_rows(self, columns: str, vector: Array, k: int, where: Filter | None) -> list[Any]:
        """The rows of the k nearest documents by the index; where it finds too few that pass, by looking at all."""
        condition, values = ("true", []) if where is None else sql_condition(where)
        text = (
            f"SELECT {columns}, -(vector <#> %s::vector) FROM {{table}} WHERE {condition} "  # nosec B608
            "ORDER BY vector <#> %s::vector LIMIT %s"
        )
        asked = _as_text(vector)
        bound = [asked, *values, asked, k]
        settings = {"hnsw__ef_search": str(min(max(k, 40), 1000))}
        if self._version >= (0, 8):
            settings["hnsw__iterative_scan"] = "strict_order"
        rows = self._rows(text, bound, **settings)
        return rows if len(rows) == k else self._rows(text, bound, enable_indexscan="off")

    @property
    def _version(self) -> tuple[int, ...]:
        """Of pgvector."""
        with self._transaction() as cursor:
            text = _one(cursor, "SELECT extversion FROM pg_extension WHERE extname = 'vector'", [])
        return tuple(int(part) for part in str(text or "0").split(".") if part.isdecimal())

    def _nearest(self, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        columns = f"{_COLUMNS}, vector_send(vector)"
        return [
            [
                StoreHit(float(row[7]), self._record(row), _vector(row[6]))
                for row in self._nearest_rows(columns, one, k, where)
            ]
            for one in vectors
        ]

    def nearest_ids(self, vectors: Array, k: int, where: Filter | None) -> list[list[str]]:
        return [[row[0] for row in self._nearest_rows("id", vector, k, where)] for vector in vectors]

    def ids_by_words(self, words: Sequence[AskedWord], k: int, where: Filter | None) -> list[str]:
        rarest, looked_at = [], 0
        for asked in sorted((one for one in words if one.weight > 0), key=lambda one: one.held_by):
            looked_at += asked.held_by
            if looked_at > MOST_HELD:
                break
            rarest.append(asked.word)
        if not rarest:
            return []
        condition, values = ("true", []) if where is None else sql_condition(where)
        text = _BY_WORDS.replace("{passing}", f" AND ({condition})")
        bound = [K1, B, B, max(self.statistics().mean_length, 1e-9)]
        asked_words = [[one.word for one in words], [one.weight for one in words]]
        return [row[0] for row in self._rows(text, [rarest, *values, *bound, *asked_words, k])]

    def statistics(self) -> Statistics:
        with self._transaction() as cursor:
            line = self._line(cursor)
        if line is None:
            raise self._missing()
        _, documents, words, change = line
        return Statistics(int(documents), words / max(documents, 1), str(change))

    def held_by(self, words: Iterable[str]) -> Mapping[str, int]:
        names = {word_key(word): word for word in words}
        found = self._rows("SELECT word, coalesce(held, 0) FROM {table_of_words} WHERE word = ANY(%s)", [list(names)])
        return {names[key]: int(held) for key, held in found}

    def fetch(self, ids: Sequence[str]) -> list[FoundDocument]:
        found: list[FoundDocument] = []
        text = f"SELECT {_COLUMNS}, vector_send(vector), words, clauses FROM {{table}} WHERE id = ANY(%s) ORDER BY id"  # nosec B608
        for part in in_batches(ids, _ROWS):
            found += map(self._found, self._rows(text, [list(part)]))
        return found

    def _record(self, row: Sequence[Any]) -> Record:
        known = dict(zip(("id", "document", "digest"), row, strict=False))
        with self._reading(row[0]):
            return Record.stored({**known, "fields": row[5]}, row[3], row[4])

    def _found(self, row: Sequence[Any]) -> FoundDocument:
        record = self._record(row)
        with self._reading(row[0]):
            vector, evidence = _vector(row[6]), evidence_from_bytes(row[8], row[7], record.text)
            if len(evidence.clauses) and evidence.vectors.shape[1] != len(vector):
                raise RetrievalError("its clauses cannot be read")
        return FoundDocument(record, vector, evidence)

    def passages(self, documents: Sequence[str]) -> list[str]:
        text = "SELECT id FROM {table} WHERE document = ANY(%s) ORDER BY id"
        return [row[0] for row in self._rows(text, [list(documents)])]

    def sample(self, count: int) -> list[FoundDocument]:
        ids = self._rows("SELECT id FROM {table} ORDER BY md5(id) LIMIT %s", [count])
        return self.fetch([row[0] for row in ids])

    def close(self) -> None:
        self._connection.close()


def _one(cursor: Any, text: str, values: Sequence[Any]) -> Any:
    row = cursor.execute(text, values).fetchone()
    return None if row is None else row[0]


def _vector(content: bytes | None) -> Array:
    """A vector as `vector_send` gives it: four bytes, then its numbers."""
    if content is None:
        raise RetrievalError("its vector is None")
    return np.frombuffer(content, ">f4", offset=4).astype(np.float32)


def _as_text(vector: Array) -> str:
    return json.dumps(vector.tolist())
