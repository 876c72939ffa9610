"""Calibrate an index: which line keeps what a query excludes out of its results, with what error rate.

Exclusions are made from the documents themselves, so that it is known which documents have what is excluded. Each is
asked as a user's query would be.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from boolbert.core.checks import check_flags
from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.core.files import write_json
from boolbert.core.progress import shown_progress, shown_step
from boolbert.data import DataError
from boolbert.data.own import OwnDocuments
from boolbert.data.own.exclusions import Exclusion, make_exclusions
from boolbert.retrieval.exclusion_line import (
    CALIBRATION_DEPTH,
    ExclusionLine,
    KnownExclusion,
    calibrated_line,
    excludes,
    features_of,
)
from boolbert.retrieval.index import MANIFEST, STORE, Index
from boolbert.retrieval.stores import FileStore
from boolbert.retrieval.stores.remote import RemoteStore

from .rank import RankedDocuments, rank
from .searcher import BoolSearcher

ENOUGH = 100  # documents that usually give some hundred exclusions; half as many give a fifth of them, or none


def calibrate(
    searcher: BoolSearcher, exclusions: Sequence[Exclusion] | None = None, *, progress: bool = True
) -> ExclusionLine:
    """Calibrate a searcher's index or store, and keep the line there. exclusions: made from its documents, if not
    given."""
    check_flags(progress=progress)
    if not searcher.has_evidence:
        raise RetrievalError(f"{searcher.index.name}: has no evidence to calibrate; index its documents again with it")
    if exclusions is None:
        with shown_step(f"calibrate: making queries from the {len(searcher.index):,} documents", shown=progress):
            exclusions = made_exclusions(searcher)
    index, known = searcher.index, []
    store = FileStore(index.folder) if isinstance(index, Index) else index
    # Before anything is asked: it may change meanwhile. A database's documents are counted and not read through.
    content = 0 if isinstance(store, RemoteStore) else store.local().read(lambda now: now.content)
    asking = BoolSearcher(searcher.model, index)
    asking.documents.follows = False  # the exclusions know the documents by the rows that they have in the index
    with suppress(BoolBertError):  # a GPU, or it is not installed: torch computes the queries then
        asking.use_onnx()
    with shown_progress("calibrate", len(exclusions), "exclusion", shown=progress) as advance:
        for exclusion in exclusions:
            known.append(asked(asking, exclusion)[0])
            advance(1)
    asked_of = [found for found in known if found is not None]
    line = calibrated_line(asked_of, len(index), index.about().encoder, content)
    with store.writing():  # an index may have become a store by now
        if isinstance(index, Index) and not (index.folder / STORE).exists():
            index.manifest["line"] = line.as_json()
            write_json(index.folder / MANIFEST, index.manifest)
        else:
            store.note(replace(store.about(), line=line.as_json()))
    return line


def asked(searcher: BoolSearcher, exclusion: Exclusion) -> tuple[KnownExclusion | None, list[int | str | None]]:
    """What documents say about what a query excludes, best first, and their rows or ids; None where nothing is read as
    excluded."""
    question, parts = searcher.question(exclusion.query)
    if not excludes(question):
        return None, []

    def look(documents: RankedDocuments) -> tuple[KnownExclusion, list[int | str | None]]:
        found_rows = rank(documents, question, parts, CALIBRATION_DEPTH, read=0)
        found = documents.candidates(found_rows.scores, found_rows.rows)
        keys = [candidate.id if candidate.row is None else candidate.row for candidate in found]
        has = np.array([key in exclusion.excluded for key in keys], np.bool_)
        rows = np.array(found_rows.rows, np.int64)
        return KnownExclusion(features_of(documents.evidence, question.excluded, rows, documents.wholes), has), keys

    return searcher.documents.ranked(None, look, question, parts, CALIBRATION_DEPTH)


def made_exclusions(searcher: BoolSearcher) -> list[Exclusion]:
    """Exclusions over the documents of an index or a store, made from their words, names and fields."""
    documents = list(_documents(searcher))
    if not documents:
        raise RetrievalError(f"{searcher.index.name}: has no documents with a word in them, so nothing to calibrate on")
    keys, rows = zip(*documents, strict=True)
    try:
        made = make_exclusions(OwnDocuments(rows, progress=False))
    except DataError as error:
        if len(rows) >= ENOUGH:
            raise RetrievalError(f"{searcher.index.name}: cannot be calibrated: {error}") from None
        raise RetrievalError(
            f"{searcher.index.name}: cannot be calibrated: its {len(rows)} documents give too few exclusions to try; "
            f"usually {ENOUGH} or more are needed ({error})"
        ) from None
    return [Exclusion(one.query, frozenset(keys[row] for row in one.excluded)) for one in made]


def _documents(searcher: BoolSearcher) -> Iterator[tuple[int | str, dict[str, Any]]]:
    """The documents with the values of their fields, each with its row or id. One without a word makes no query."""
    index = searcher.index
    rows: Iterator[tuple[int | str, str, str, Any]]
    if isinstance(index, Index):
        rows = ((row, document.title, document.text, {}) for row, document in enumerate(index.documents()))
    else:
        rows = ((record.id, record.title, record.text, record.fields) for record in index.records())
    for key, title, text, fields in rows:
        if any(map(str.isalnum, title + text)):
            yield key, {**fields, "title": title, "text": text}
