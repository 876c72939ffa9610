"""Documents into a store: encoded in batches, added as they come.

A call that was cut off goes on where it was, and one with changed documents encodes only those: each record keeps a
digest of its content, and what is there unchanged is left alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from boolbert.core.checks import check_count, check_flags
from boolbert.core.errors import RetrievalError
from boolbert.core.progress import shown_progress
from boolbert.data.own import OwnDocument, OwnDocuments
from boolbert.retrieval.batches import prepared_batches, start_batches
from boolbert.retrieval.encode import default_batch_size
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import evidence_of
from boolbert.retrieval.index import clause_encoder
from boolbert.retrieval.int8_encoder import Int8Encoder, int8_encoder
from boolbert.retrieval.models import is_cosine
from boolbert.retrieval.records import Record
from boolbert.retrieval.shards import FLOAT32, INT8, SHARD_SIZE

from .base import VectorStore
from .file_store import FileStore

if TYPE_CHECKING:
    from boolbert.retrieval.models import SearchModel


@dataclass
class Written:
    """What a call has done."""

    documents: int = 0
    encoded: int = 0
    deleted: int = 0  # records that their document or their table no longer has
    repeated: int = 0  # ids that came before in the same source; the last one counts
    clauses: int = 0  # of the documents that were encoded, where the store has evidence
    evidence_bytes: int = 0


def index_documents(
    documents: OwnDocuments,
    store: VectorStore,
    model: "SearchModel",
    *,
    batch: int = SHARD_SIZE,
    progress: bool = True,
    evidence: bool = True,
    float32: bool = False,
    table: str = "",
) -> Written:
    """Add documents to a store, or go on where an earlier call was cut off. Documents of the same id are replaced.

    evidence: of a new store, whether it keeps what documents say, clause by clause, where the model compares vectors by
    their cosine. One that is there keeps it if it was made with it. float32: as for `build_index`. table: the user's
    own table whose rows these are, all of them; what the store has besides is deleted.
    """
    check_count("batch", batch)
    check_flags(progress=progress, evidence=evidence, float32=float32)
    written = Written()
    seen: set[str] = set()
    with store.writing():
        _check_table(store, table)
        evidence = evidence and is_cosine(model.encoder)
        known = store.about().precision if store.exists() else None
        int8 = int8_encoder(model.encoder, known, store.name, float32=float32)
        precision = FLOAT32 if int8 is None else INT8
        about = About.of(model, documents.columns, documents.name, evidence=evidence, precision=precision)
        store.create(replace(about, table=table, columns=documents.layout.named))
        encode = clause_encoder(model, int8) if store.about().evidence else None
        is_new = store.count() == 0
        with shown_progress("index", None, "document", shown=progress) as advance:
            for part in _batches(documents, batch):
                records = {record.id: record for record in map(Record.of, part)}
                written.documents += len(part)
                written.repeated += len(part) - len(records) + len(seen & records.keys())
                seen |= records.keys()
                # A document without an id of its own has its title: two of one title must not delete each other.
                named = {own.whole or own.id for own in part if own.id}
                stored = {} if is_new else store.digests(named)
                stale = stored.keys() - records.keys()
                # A document that is cut into passages now: deleting it by its id would delete them as well, once added.
                if whole := stale & {record.document for record in records.values()}:
                    written.deleted += len(store.delete(whole))
                    stored = store.digests(named)
                    stale = stored.keys() - records.keys()
                stored |= {} if is_new else store.digests({record.document for record in records.values()} - named)
                new = [record for record in records.values() if stored.get(record.id) != record.digest]
                if new:
                    texts = [record.text for record in new]
                    with shown_progress("encode", len(texts), "document", shown=progress, brief=True) as encoded:
                        vectors = _vectors(model, int8, texts, encoded)
                    with shown_progress("evidence", len(texts), "document", shown=progress, brief=True) as read:
                        said = None if encode is None else list(evidence_of(texts, encode, read))
                    store.add(new, vectors, said)
                    written.clauses += sum(len(one.clauses) for one in said or ())
                    written.evidence_bytes += sum(one.size for one in said or ())
                written.deleted += len(store.delete(stale)) if stale else 0
                written.encoded += len(new)
                advance(len(part))
        if table and (gone := [id for id in store.ids() if id not in seen]):
            written.deleted += len(store.delete(gone))
        _finish(store, len(seen), is_new)
    return written


def copy_documents(
    source: FileStore, store: VectorStore, *, batch: int = SHARD_SIZE, progress: bool = True, evidence: bool = True
) -> Written:
    """Add what a folder holds to another store. Vectors and evidence are taken as they are: nothing is encoded.

    So documents are encoded once, on as many GPUs as there are, and served by any engine.
    """
    check_count("batch", batch)
    check_flags(progress=progress, evidence=evidence)
    written = Written()
    now = source.snapshot()
    rows = np.flatnonzero(now.live)
    with store.writing():
        _check_table(store, "")
        if store.exists() and (own := store.about().precision) != now.about.precision:
            raise RetrievalError(
                f"{store.name}: its vectors were computed in {own}, those of {source.name} in {now.about.precision}; "
                "copy them into a new store"
            )
        store.create(replace(now.about, evidence=now.about.evidence and evidence))
        has_evidence = store.about().evidence
        is_new = store.count() == 0
        with shown_progress("copy", len(rows), "document", shown=progress) as advance:
            for start in range(0, len(rows), batch):
                part = rows[start : start + batch]
                records = [now.full_record(int(row)) for row in part]
                stored = {} if is_new else store.digests({record.document for record in records})
                new = [place for place, record in enumerate(records) if stored.get(record.id) != record.digest]
                if new:
                    said = list(now.evidence.documents(part[new])) if has_evidence else None
                    store.add([records[place] for place in new], now.rows(part[new]), said)
                written.documents += len(part)
                advance(len(part))
        _finish(store, len(rows), is_new)
    return written


def _vectors(
    model: "SearchModel", int8: Int8Encoder | None, texts: Sequence[str], on_batch: Callable[[int], object]
) -> npt.NDArray[np.float32]:
    if int8 is not None:
        return int8(texts, on_batch)
    batches = prepared_batches(model.encoder, texts, "document", default_batch_size(model.encoder))
    return start_batches(model.encoder, batches, "document", on_batch=on_batch)()


def _check_table(store: VectorStore, table: str) -> None:
    """A store holds the rows of one table, or documents of any files: what a table does not have is deleted."""
    about = store.about() if store.exists() else None
    if about is not None and about.table != table:
        held = f"the rows of the table {about.table}" if about.table else "documents that are no rows of a table"
        raise RetrievalError(f"{store.name}: holds {held}; index others into another --collection")


def _finish(store: VectorStore, added: int, is_new: bool) -> None:
    """Check that nothing is missing, and say that the store is complete."""
    count = store.count()
    if count < added or (is_new and count > added and not store.several_writers):
        raise RetrievalError(f"{store.name}: holds {count:,} documents, and {added:,} were added; index again")
    store.note(replace(store.about(), complete=True))


def _batches(documents: Iterable[OwnDocument], size: int) -> Iterator[list[OwnDocument]]:
    """Batches of at least this size that never part the passages of a document."""
    part: list[OwnDocument] = []
    for document in documents:
        if len(part) >= size and (document.whole is None or document.whole != part[-1].whole):
            yield part
            part = []
        part.append(document)
    if part:
        yield part
