"""An index on disk: the documents, their vectors, and from which corpus and model they were made.

index.json        the model, the corpus and their hashes; written last, so that an index is whole or not there
documents.jsonl   title and text of each document
records.jsonl     the id of each, and the fields that filters ask for
passages.npy      for each row the number of its document, where documents were cut into passages
lines.npy         where each line of documents.jsonl begins
checks.npy        the check sum of each line; that of this file and the ones of the others are in index.json
vectors/          shards as `encode_corpus` writes them; a build that was cut off continues them
evidence/         the vectors of the documents' clauses, and their words: retrieval/evidence.py
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boolbert.core.checks import check_flags
from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.core.files import check_sum, file_sum, make_folder, read_object, save_array, whole_file, write_json
from boolbert.data import Corpus, DataError, Document, Quest
from boolbert.data.own import OwnDocument, OwnDocuments
from boolbert.data.own.columns import written
from boolbert.retrieval.arrays import load_array
from boolbert.retrieval.encoded_documents import About, EncodedDocuments
from boolbert.retrieval.evidence import FOLDER as EVIDENCE
from boolbert.retrieval.evidence import DocumentEvidence, Encode, Evidence, rules_of, unit_length
from boolbert.retrieval.fingerprints import corpus_fingerprint, document_encoder_of
from boolbert.retrieval.models import is_cosine
from boolbert.retrieval.passages import whole_documents
from boolbert.retrieval.records import Record
from boolbert.retrieval.shards import (
    INT8,
    SHARD_SIZE,
    Shards,
    begin,
    check_fields,
    precision_of,
    shard_count,
    shard_rows,
    write_shard,
)
from boolbert.retrieval.shards import MANIFEST as SHARDS_MANIFEST
from boolbert.retrieval.store_names import check_folder_name

if TYPE_CHECKING:
    from boolbert.retrieval.int8_encoder import Int8Encoder
    from boolbert.retrieval.models import SearchModel

MANIFEST, DOCUMENTS, LINES, VECTORS = "index.json", "documents.jsonl", "lines.npy", "vectors"
CHECKS = "checks.npy"
RECORDS, PASSAGES = "records.jsonl", "passages.npy"
COUNTRIES = "countries"
STORE = "store.json"  # where documents were added or deleted since: `retrieval/stores/file_store.py`
FIELDS = {"document_encoder": str, "corpus": str, "documents": int, "bytes": int}


class Index(EncodedDocuments):
    """Documents and their vectors in a folder. Nothing is read before it is asked for."""

    def __init__(self, folder: str | Path):
        check_folder_name(folder)
        self.folder, self.name = Path(folder), str(folder)
        try:
            self.manifest: dict[str, Any] = read_object(self.folder / MANIFEST, RetrievalError)
            manifest, kinds = (
                {"fields": {}, "columns": {}, **self.manifest},
                {**FIELDS, "fields": dict, "columns": dict},
            )
            check_fields(self.folder / MANIFEST, manifest, kinds)
        except (FileNotFoundError, NotADirectoryError):
            raise RetrievalError(
                f"{self.folder}: no index there ({MANIFEST} is missing); make one with: "
                f"boolbert index DOCS.jsonl --output {self.folder}"
            ) from None
        except RetrievalError as error:
            raise RetrievalError(f"{error}; delete the folder and index again") from None
        self.vectors = Shards(self.folder / VECTORS)
        try:
            self._lines = load_array(self.folder / LINES, "int64", (None,))
            self._checks = self._loaded_checks()
            size = (self.folder / DOCUMENTS).stat().st_size
        except Exception as error:  # not there, empty, cut short: numpy has an error type for each
            names = f"{LINES}, {CHECKS} or {DOCUMENTS}"
            raise RetrievalError(f"{self.folder}: {names} is damaged ({error}); index again") from None
        counts = {self._lines.shape, (len(self.vectors),), (self.manifest["documents"],)}
        if len(counts) > 1 or self.vectors.manifest["corpus"] != self.manifest["corpus"]:
            raise RetrievalError(f"{self.folder}: documents and vectors do not belong together; index again")
        if size != self.manifest["bytes"]:
            raise RetrievalError(f"{self.folder / DOCUMENTS}: was changed after it was indexed; index again")

    def _loaded_checks(self) -> npt.NDArray[Any] | None:
        """The check sums of the documents' lines; None in an index of an earlier version."""
        if "checks" not in self.manifest:
            return None
        checks = load_array(self.folder / CHECKS, "uint32", self._lines.shape)
        if self.manifest["checks"] != check_sum(self._lines, checks):
            raise ValueError(f"{LINES} or {CHECKS} was changed after it was written")
        return checks

    def check_records(self, content: bytes) -> None:
        """Raise where the content of `RECORDS` is not what was written."""
        if self.manifest.get("records", own := check_sum(content)) != own:
            raise ValueError("it was changed after it was written")

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def evidence(self) -> Evidence | None:
        """What its documents say, clause by clause; None where it was made without."""
        folder = self.folder / EVIDENCE
        known = self.manifest["corpus"], self.manifest["document_encoder"]
        return Evidence(folder, *known) if folder.is_dir() else None

    @cached_property
    def wholes(self) -> npt.NDArray[np.int64] | None:
        """For each row the number of its document, where documents were cut into passages: retrieval/passages.py."""
        path = self.folder / PASSAGES
        if not path.exists():
            return None
        try:
            wholes: npt.NDArray[np.int64] = np.load(path)
        except Exception as error:  # empty, cut short: numpy has an error type for each
            raise RetrievalError(f"{path}: is damaged ({error}); index again") from None
        if wholes.shape != (len(self),):
            raise RetrievalError(f"{path}: belongs to other documents; index again")
        return wholes

    def __getitem__(self, row: int) -> Document:
        return self.at([row])[0]

    def at(self, rows: Iterable[int]) -> list[Document]:
        """The documents of some rows."""
        found = []
        with (self.folder / DOCUMENTS).open("rb") as file:
            for row in rows:
                place = int(self._lines[row])
                file.seek(max(0, place))
                found.append(self._document(row, file.readline() if place >= 0 else b""))
        return found

    @cached_property
    def _record_starts(self) -> npt.NDArray[np.int64]:
        """Where each line of `RECORDS` begins, and the last one ends; none where there is no such file."""
        path = self.folder / RECORDS
        if not path.exists():
            return np.zeros(1, np.int64)
        content = path.read_bytes()
        try:
            self.check_records(content)
        except ValueError as error:
            raise RetrievalError(f"{path}: is damaged ({error}); index again") from None
        return np.concatenate([[0], np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1])

    def fields_at(self, rows: Iterable[int]) -> list[dict[str, Any]]:
        """What documents have in their columns, as they have it."""
        kinds: dict[str, str] = self.manifest.get("fields") or {}
        if not kinds or len(starts := self._record_starts) == 1:
            return [{} for _ in rows]
        found = []
        with (self.folder / RECORDS).open("rb") as file:
            for row in rows:
                try:
                    file.seek(int(starts[row]))
                    found.append(written(json.loads(file.readline())["fields"], kinds))
                except (ValueError, KeyError, TypeError, IndexError, AttributeError):
                    raise RetrievalError(f"{self.folder / RECORDS}: line {row + 1} is damaged; index again") from None
        return found

    def documents(self) -> Iterator[Document]:
        """All documents, in the order of their rows."""
        with (self.folder / DOCUMENTS).open("rb") as file:
            for row, line in enumerate(file):
                yield self._document(row, line)

    def _document(self, row: int, line: bytes) -> Document:
        try:
            if self._checks is not None and self._checks[row] != check_sum(line):
                raise ValueError
            content = json.loads(line)
            return Document(content["title"], content["text"])
        except (ValueError, KeyError, TypeError, IndexError):
            raise RetrievalError(f"{self.folder / DOCUMENTS}: document {row} is damaged; index again") from None

    @cached_property
    def _rules(self) -> int:
        return rules_of(self.folder / EVIDENCE)

    def about(self) -> About:
        kept = {
            "encoder": self.manifest["document_encoder"],
            "size": self.vectors.shape[1],
            "model": found_name(self.manifest.get("model"), self.folder),
            "fields": self.manifest.get("fields", {}),
            "columns": self.manifest.get("columns", {}),
            "source": str(self.manifest.get("source", "")),
            "evidence": (self.folder / EVIDENCE).is_dir(),
            "rules": self._rules,
            "line": self.manifest.get("line"),
            "precision": self.vectors.manifest["precision"],
        }
        return About.stored(kept, f"{self.folder / MANIFEST}:", "delete the folder and index again")


def build_index(
    documents: str | Path | Corpus | OwnDocuments | None,
    folder: str | Path,
    model: "SearchModel",
    *,
    progress: bool = True,
    evidence: bool = True,
    float32: bool = False,
) -> Index:
    """Encode documents into a folder, or go on where an earlier call was cut off.

    Of several launched processes each encodes its own shards, and the first writes the rest. `documents`: a .jsonl,
    .csv, .tsv or .parquet file, a folder of texts, a Hub data set id, or None for the countries. evidence: encode each
    document's clauses too, where the model compares vectors by their cosine. float32: not in int8, which is usual on a
    CPU that has int8 products (retrieval/int8_encoder.py).
    """
    from boolbert.retrieval.encode import encode_corpus, processes
    from boolbert.retrieval.int8_encoder import int8_encoder

    check_folder_name(folder)
    check_flags(progress=progress, evidence=evidence, float32=float32)
    folder = Path(folder)
    records: list[dict[str, Any]] = []
    if isinstance(documents, str | Path) and documents != COUNTRIES:
        documents = OwnDocuments(documents, progress=progress)
    if isinstance(documents, OwnDocuments):
        _check_apart(documents.name, folder)
        corpus = Corpus((_remembered(own, records) for own in documents), name=documents.name)
    elif isinstance(documents, Corpus):
        corpus = documents
    else:
        corpus = Quest(None, progress=progress).corpus
    if not len(corpus):
        raise DataError(f"{corpus.name}: there are no documents in it")
    fingerprint = corpus_fingerprint(corpus)
    if (folder / STORE).exists():
        raise RetrievalError(f"{folder}: is a store; add documents with: boolbert index DOCS.jsonl --store {folder}")
    _check_own(folder, corpus, fingerprint)
    make_folder(folder)
    precision = precision_of(folder / VECTORS)
    # A model that is not opened (search/default_program.py) has one that is made already.
    int8 = getattr(model, "int8", None) or int8_encoder(model.encoder, precision, folder, float32=float32)
    encode_corpus(int8 or model.encoder, corpus, folder / VECTORS, progress=progress, mixed=precision == INT8)
    state = processes()
    if not state.is_main_process:
        state.wait_for_everyone()
        return Index(folder)
    if isinstance(documents, OwnDocuments):
        ids = numbered(record["id"] for record in records)
        write_records(folder, ({**record, "id": id} for record, id in zip(records, ids, strict=True)))
    document_encoder = document_encoder_of(model)
    is_new = False
    if evidence and (is_cosine(model.encoder) if int8 is None else int8.is_cosine):
        is_new = add_evidence(folder, corpus, clause_encoder(model, int8), document_encoder, progress=progress)
    fields = documents.columns if isinstance(documents, OwnDocuments) else {}
    about = {"model": lasting_name(model.name, folder), "document_encoder": document_encoder, "fields": fields}
    about["source"] = corpus.name
    if isinstance(documents, OwnDocuments):
        about["columns"] = documents.layout.named
    if not is_new and is_index(folder) and (line := read_object(folder / MANIFEST, RetrievalError).get("line")):
        about["line"] = line  # of the same evidence, documents and encoder, else the vectors would have been refused
    write_rest(folder, corpus, about)
    state.wait_for_everyone()
    return Index(folder)


def write_rest(folder: Path, documents: Corpus | Sequence[Document], about: dict[str, Any]) -> None:
    """Write the documents of an index whose vectors and evidence are there, and that it is whole."""
    checks = _write_documents(folder, documents)
    size = (folder / DOCUMENTS).stat().st_size
    known = {"corpus": corpus_fingerprint(documents), "documents": len(documents), "bytes": size, "checks": checks}
    if (folder / RECORDS).exists():
        known["records"] = file_sum(folder / RECORDS)
    write_json(folder / MANIFEST, {**about, **known})


def add_evidence(folder: Path, corpus: Corpus, encode: Encode, document_encoder: str, *, progress: bool = True) -> bool:
    """Write what the documents of an index say; what is there of them already stays, if it is whole and made by the
    same rules: False then. encode: of their clauses."""
    known = corpus_fingerprint(corpus), document_encoder
    if (folder / EVIDENCE).is_dir():
        try:
            Evidence(folder / EVIDENCE, *known)
            return False
        except RetrievalError:
            shutil.rmtree(folder / EVIDENCE)
    Evidence.build(
        folder / EVIDENCE, corpus.texts(), encode, corpus=known[0], model=document_encoder, progress=progress
    )
    return True


def clause_encoder(model: "SearchModel", int8: "Int8Encoder | None" = None) -> Encode:
    """What encodes the clauses of documents. int8: what encodes the documents themselves, where that is in int8."""
    if int8 is not None:
        return lambda texts: unit_length(int8(texts))
    from boolbert.retrieval.batches import encode_inputs
    from boolbert.retrieval.encode import default_batch_size

    size = 4 * default_batch_size(model.encoder)
    return lambda texts: unit_length(encode_inputs(model.encoder, texts, "document", size))


def write_index(
    folder: Path,
    documents: Corpus | Sequence[Document],
    records: Iterable[dict[str, Any]] | None,
    vectors: npt.NDArray[np.float32],
    manifest: dict[str, Any],
    evidence: Iterable[DocumentEvidence] | None = None,
) -> None:
    """Write documents whose vectors are at hand. `manifest` says which model and document encoder made them."""
    fingerprint = corpus_fingerprint(documents)
    shards = {
        "documents": len(vectors),
        "size": vectors.shape[1],
        "shard_size": SHARD_SIZE,
        "batch_size": SHARD_SIZE,
        "storage": str(vectors.dtype),
        "corpus": fingerprint,
        "model": manifest["document_encoder"],
    }
    begin(folder / VECTORS, shards)
    for number in range(shard_count(shards)):
        rows = shard_rows(number, shards)
        write_shard(folder / VECTORS, number, vectors[rows.start : rows.stop], shards)
    if records is not None:
        write_records(folder, records)
    if evidence is not None:
        Evidence.write(folder / EVIDENCE, evidence, corpus=fingerprint, model=manifest["document_encoder"])
    write_rest(folder, documents, manifest)


def _remembered(own: OwnDocument, records: list[dict[str, Any]]) -> Document:
    """A user's document as it is encoded. Its id and fields go into `records`."""
    record = Record.of(own)
    records.append(record.beside_text())
    return Document(record.title, record.text)


def numbered(names: Iterable[str]) -> Iterator[str]:
    """The names; one that came before gets a number.

    >>> list(numbered(["a", "b", "a"]))
    ['a', 'b', 'a [2]']
    """
    counts: Counter[str] = Counter()
    for name in names:
        counts[name] += 1
        yield name if counts[name] == 1 else f"{name} [{counts[name]}]"


def write_records(folder: Path, records: Iterable[dict[str, Any]]) -> None:
    documents = []
    with whole_file(folder / RECORDS) as aside, aside.open("w", encoding="utf-8") as file:
        for record in records:
            id, document = record["id"], record["document"]
            is_numbered = re.fullmatch(r" \[\d+\]", id.removeprefix(document)) is not None  # another one of this id
            documents.append(id if is_numbered else document)
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    wholes = whole_documents(documents)
    if wholes is None:
        (folder / PASSAGES).unlink(missing_ok=True)
        return
    with whole_file(folder / PASSAGES) as aside:
        save_array(aside, wholes)


def is_index(folder: Path) -> bool:
    """Whether an index is there; it may be damaged."""
    return (folder / MANIFEST).exists()


def _check_apart(documents: str, folder: Path) -> None:
    """Raise where the index would be written over its source, or beside it."""
    if not Path(documents).exists():
        return
    source = Path(documents).resolve()
    if folder.resolve() in (source, source.parent if source.is_file() else source):
        raise RetrievalError(
            f"{folder}: holds the documents that are to be indexed; give a folder of its own, such as --output "
            f"{folder / 'index' if folder.is_dir() else 'index'}"
        )


def _check_own(folder: Path, corpus: Corpus, fingerprint: str) -> None:
    """Raise where the folder holds a file under one of the index's names that no index wrote."""
    names = [MANIFEST, DOCUMENTS, LINES, CHECKS, RECORDS, PASSAGES]
    with suppress(OSError, BoolBertError):
        check_fields(folder / MANIFEST, read_object(folder / MANIFEST), FIELDS)
        return  # an index; whether of this corpus, the vectors' own manifest tells
    with suppress(OSError, BoolBertError):
        if read_object(folder / VECTORS / SHARDS_MANIFEST).get("corpus") == fingerprint:
            names = names[:2]  # a call that was cut off may have written the others,
            names = names[:1] if _holds(folder / DOCUMENTS, corpus) else names  # and the documents, whole
    for path in (folder / name for name in names):
        if path.exists():
            raise RetrievalError(f"{path}: is there already, and was not written by this index; give another folder")


def _holds(path: Path, corpus: Corpus) -> bool:
    """Whether a file is the one that the index would write."""
    with path.open("rb") as file:
        return all(file.readline() == _line(document) for document in corpus) and not file.read(1)


def _line(document: Document) -> bytes:
    return json.dumps({"title": document.title, "text": document.text}, ensure_ascii=False).encode() + b"\n"


def _write_documents(folder: Path, corpus: Iterable[Document]) -> int:
    """Write the documents, where their lines begin and the check sums of these; the check sum of both."""
    starts, sums, end = list[int](), list[int](), 0
    with whole_file(folder / DOCUMENTS) as aside, aside.open("wb") as file:
        for document in corpus:
            starts.append(end)
            line = _line(document)
            sums.append(check_sum(line))
            end += file.write(line)
    lines, checks = np.array(starts, np.int64), np.array(sums, np.uint32)
    for name, array in ((LINES, lines), (CHECKS, checks)):
        with whole_file(folder / name) as aside:
            save_array(aside, array)
    return check_sum(lines, checks)


def lasting_name(name: str | None, folder: Path) -> str | None:
    """A folder's name that holds wherever the index is used from; one inside of the index moves with it ("./model")."""
    if name is None or not Path(name).is_dir():
        return name  # a Hub id
    path = Path(name).resolve()
    inside = path.is_relative_to(folder.resolve())
    return f"./{path.relative_to(folder.resolve()).as_posix()}" if inside else str(path)


def found_name(name: object, folder: Path) -> str | None:
    """The name to load a model by, from the `lasting_name` that the index in this folder keeps."""
    text = None if name is None else str(name)
    return str(folder / text) if text is not None and text.startswith("./") else text
