"""Documents that stay in a user's database: it finds candidates, and only these travel to the machine that ranks them.

The database finds candidates by its nearest neighbours and by its own search for words. Their texts, vectors and
clauses become evidence in memory. BM25's weights are those of the whole collection: the database tells how many
documents hold a word.
"""

import hashlib
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.core.addresses import shown_name
from boolbert.core.errors import RetrievalError, shorten
from boolbert.retrieval.calibration import UNRELATED, unrelated_cosine
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import RULES, DocumentEvidence, Evidence, other_rules
from boolbert.retrieval.exclusion_line import OUTDATED
from boolbert.retrieval.passages import whole_documents
from boolbert.retrieval.records import Record
from boolbert.retrieval.scoring import Question
from boolbert.retrieval.shards import Vectors
from boolbert.retrieval.words import WordIndex, rarity, word_weights

from .base import WAIT, Array, VectorStore
from .where import Filter, as_json, fitted_filter

if TYPE_CHECKING:
    from .file_store import FileStore

COLLECTION = "documents"
LONGEST_WORD = 200  # characters of a word as a key; a longer one has its digest
LENGTHS = 2000  # documents that tell how many words one has on average, where a database does not count them itself
FEWER = 2  # where something is excluded, this many times more candidates: some of them have it

Rows = npt.NDArray[np.int64]
_PLAIN = re.compile(r"(?!x[0-9a-f]+\Z)[A-Za-z_]\w{0,100}", re.ASCII)


class AskedWord(NamedTuple):
    """A word that documents are searched by.

    weight: what it adds to the score of a document that is full of it; below 0 where it is excluded. held_by: how many
    documents hold it.
    """

    word: str
    weight: float
    held_by: int


class FoundDocument(NamedTuple):
    """A document as the database keeps it."""

    record: Record
    vector: Array
    evidence: DocumentEvidence


class Statistics(NamedTuple):
    """What BM25 has to know of a collection. change: another text after each change."""

    documents: int
    mean_length: float
    change: str


class RemoteStore(VectorStore):
    """A store in a database, which finds candidates by itself."""

    several_writers = True
    _holder = "collection"  # what the database calls it

    def __init__(self, address: str, collection: str | None):
        self.collection = collection or COLLECTION
        self._place = shown_name(address)
        self.name = self._place if collection is None else f"{self._place} {collection}"
        self._about: About | None = None
        self._unrelated: tuple[str, float] | None = None  # at which change, and the cosine
        self._change = ""
        self._of_change: dict[Any, Any] = {}  # what was counted since the last change

    def about(self) -> About:
        known = self._about  # another thread may forget it meanwhile
        if known is None:
            known = self._about = self._read_about()
        return known

    @abstractmethod
    def _read_about(self) -> About:
        """What the database knows of the collection; a RetrievalError where it has none, or one of others."""

    def refresh(self) -> None:
        """Forget what was known of the collection: another process may have changed it."""
        self._about = None

    def _is_at(self, change: str) -> None:
        """Forget what was counted before this change."""
        if change != self._change:
            self._change, self._of_change = change, {}

    def _missing(self) -> RetrievalError:
        flags = "" if self.collection == COLLECTION else f" --collection {self.collection}"
        return RetrievalError(
            f"{self._place}: has no collection {self.collection!r}; make one with: boolbert index DOCS.jsonl "
            f"--store {self._place}{flags}"
        )

    def _not_ours(self) -> RetrievalError:
        return RetrievalError(
            f"{self._place}: the {self._holder} {self.collection!r} was not made by boolbert; give another name with "
            "--collection"
        )

    @contextmanager
    def _reading(self, id: object) -> Iterator[None]:
        """Around what makes a document again: one line where another program has damaged it in the database."""
        try:
            yield
        except RetrievalError as error:
            raise RetrievalError(
                f"{self.name}: the document {shorten(id)} is damaged ({error}); remove it with --remove {id}, and "
                "index it again"
            ) from None

    def _check_size(self, size: int | None, about: About) -> None:
        if size != about.size:
            raise RetrievalError(
                f"{self.name}: the {self._holder} holds vectors of {size} numbers, not of {about.size} as when it was "
                "made; index into another --collection"
            )

    @abstractmethod
    def statistics(self) -> Statistics: ...

    @abstractmethod
    def held_by(self, words: Iterable[str]) -> Mapping[str, int]:
        """How many documents hold each word."""

    @abstractmethod
    def nearest_ids(self, vectors: Array, k: int, where: Filter | None) -> list[list[str]]:
        """For each vector the ids of the k documents of the highest dot product, best first."""

    @abstractmethod
    def ids_by_words(self, words: Sequence[AskedWord], k: int, where: Filter | None) -> list[str]:
        """The ids of the k documents that have most of these words, best first."""

    def ids_by_each(self, conditions: Sequence[Sequence[AskedWord]], k: int, where: Filter | None) -> list[list[str]]:
        """The same for the words of each condition."""
        return [self.ids_by_words(words, k, where) for words in conditions]

    @abstractmethod
    def fetch(self, ids: Sequence[str]) -> list[FoundDocument]:
        """The documents of these ids; one that is not there any more is left out."""

    @abstractmethod
    def passages(self, documents: Sequence[str]) -> list[str]:
        """The ids of all passages of these documents."""

    @abstractmethod
    def sample(self, count: int) -> list[FoundDocument]:
        """Some documents from all over the collection, always the same ones while it does not change."""

    def add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        self._outdate_line()
        super().add(records, vectors, evidence)

    def digests(self, documents: Collection[str]) -> dict[str, str]:
        return self._known(documents, "digest")

    @abstractmethod
    def _known(self, documents: Collection[str], name: str) -> dict[str, str]:
        """The "digest" or the "document" of the records of these documents, by the records' ids."""

    def delete(self, ids: Collection[str]) -> dict[str, str]:
        with self._changing():  # what is there is counted down: another thread may delete the same
            found = self._known(ids, "document")
            if found:
                self._outdate_line()
                self._delete(list(found))
        return found

    def _changing(self) -> AbstractContextManager[None]:
        """Held where changes come one after another; a database that counts its documents itself needs none."""
        return nullcontext()

    @abstractmethod
    def _delete(self, ids: Sequence[str]) -> None:
        """Delete records that are there."""

    def _outdate_line(self) -> None:
        """Write down that what was calibrated is of other documents, before they change. They are not read through to
        find that out later."""
        line = self.about().line
        if line is not None and line.get("content") != OUTDATED:
            self.note(replace(self.about(), line={**line, "content": OUTDATED}))

    def local(self) -> "FileStore":
        raise RetrievalError(f"{self.name}: its documents stay in the database")

    def writing(self, wait: float = WAIT) -> AbstractContextManager[None]:
        """The database takes writers one after another by itself."""
        return nullcontext()

    def unrelated(self) -> float:
        """The cosine of clauses that have little in common, as those of different documents tell."""
        change = self.statistics().change
        if self._unrelated is None or self._unrelated[0] != change:
            said = (found.evidence for found in self.sample(UNRELATED) if len(found.evidence.clauses))
            middle = [one.vectors[len(one.clauses) // 2] for one in said]
            cosine = unrelated_cosine(np.stack(middle).astype(np.float32)) if middle else 0.0
            self._unrelated = (change, cosine)
        return self._unrelated[1]

    def check_finite(self, vectors: Array) -> None:
        if not np.isfinite(vectors).all():
            raise RetrievalError(f"{self.name}: a document's vector holds NaN or infinity: the model is broken")


class CandidateWords(WordIndex):
    """BM25 of a few documents with the weights of the collection that they are from."""

    def __init__(
        self, documents: Sequence[DocumentEvidence], statistics: Statistics, held_by: Mapping[str, int]
    ) -> None:
        self._words, self._documents = [document.words for document in documents], len(documents)
        self._count, self._held_by = max(statistics.documents, len(documents)), held_by
        self.lengths = np.array([sum(words.values()) for words in self._words], np.int32)
        self._relative = self.lengths / max(statistics.mean_length, 1e-9)

    @property
    def documents(self) -> int:
        return self._count

    def held_by(self, word: str, found: int) -> int:
        return max(self._held_by.get(word, 0), found)

    def weights(self, word: str) -> tuple[Rows, npt.NDArray[np.float16]]:
        counts = np.array([words.get(word, 0) for words in self._words], np.int64)
        rows = np.flatnonzero(counts)
        return rows, word_weights(counts[rows], self._relative[rows], self.held_by(word, len(rows)), self._count)


class Candidates(NamedTuple):
    """Documents that are worth a look, on this machine; rows count through them.

    wholes: for each row the number of its document, where documents were cut into passages.
    """

    records: Sequence[Record]
    vectors: Vectors
    evidence: Evidence
    wholes: Rows | None


def candidates_of(
    store: RemoteStore, question: Question, vectors: Array, depth: int, part_depth: int, where: str | None
) -> Candidates:
    """The candidates of a query. vectors: of the whole query (K, D). depth: how many it finds by its vectors, and how
    many by its words; part_depth: how many each of several conditions finds by either."""
    store.refresh()
    about = store.about()
    if about.rules != RULES:
        raise other_rules(store.name)
    passing, statistics = fitted_filter(where, about.fields), store.statistics()
    excluded = [word for part in question.excluded for word in (*part.words, *part.denied_words)]
    held_by = store.held_by(dict.fromkeys([word for part in question.parts for word in part.words] + excluded))
    depth *= FEWER if question.excluded else 1
    groups = store.nearest_ids(vectors, depth, passing)
    groups.append(store.ids_by_words(_asked_words(question, held_by, statistics.documents), depth, passing))
    wanted = [asked for group in question.wanted for asked in group]
    if len(wanted) > 1:
        groups += store.nearest_ids(np.stack([asked.vector for asked in wanted]), part_depth, passing)
        weights = [_weighted(asked.words, 1.0, held_by, statistics.documents) for asked in wanted]
        groups += store.ids_by_each([_listed(words, held_by) for words in weights], part_depth, passing)
    found = store.fetch(sorted({id for group in groups for id in group}))
    cut = {one.record.document for one in found if one.record.document != one.record.id}
    if cut and question.excluded:  # what a document's other passages say of it counts against all of them
        known = {one.record.id for one in found}
        found += store.fetch([id for id in store.passages(sorted(cut)) if id not in known])
    said = [one.evidence for one in found]
    evidence = Evidence.of_documents(said, CandidateWords(said, statistics, held_by), store.unrelated())
    array = np.array([one.vector for one in found], np.float32).reshape(len(found), about.size)
    wholes = whole_documents([one.record.document for one in found])
    return Candidates([one.record for one in found], Vectors([array], about.size), evidence, wholes)


def _asked_words(question: Question, held_by: Mapping[str, int], documents: int) -> list[AskedWord]:
    """The words of all conditions. Each condition counts as in `score_by_words`, excluded ones against a document."""
    weights, share = question.weights, len(question.wanted) or 1
    total: dict[str, float] = {}
    parts = [
        *((asked, weights.words / share) for group in question.wanted for asked in group),
        *((asked, -weights.words_penalty) for asked in question.excluded),
    ]
    for asked, weight in parts:
        for word, own in _weighted(asked.words, weight, held_by, documents).items():
            total[word] = total.get(word, 0.0) + own
    return _listed(total, held_by)


def _weighted(words: Iterable[str], weight: float, held_by: Mapping[str, int], documents: int) -> dict[str, float]:
    """What each word of a condition adds to a score; together they add `weight`."""
    rare = {word: float(rarity(min(held_by.get(word, 0), documents), documents)) for word in dict.fromkeys(words)}
    most = max(sum(rare.values()), 1e-9)
    return {word: weight * own / most for word, own in rare.items()}


def _listed(weights: Mapping[str, float], held_by: Mapping[str, int]) -> list[AskedWord]:
    """The words that some document holds, none of no weight."""
    return [AskedWord(word, own, held_by[word]) for word, own in weights.items() if own and held_by.get(word)]


def storable(text: str) -> str:
    r"""A text as every database can keep it, of the same length: Postgres has no place for a zero byte.

    >>> storable("a\0b\ud800c") == "a\ufffdb?c"
    True
    """
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def storable_fields(record: Record) -> dict[str, Any]:
    """
    >>> storable_fields(Record("1", "", "", {"year": 1990.0, "tag": ("a", "b")}))
    {'year': 1990, 'tag': ['a', 'b']}
    """
    values = {storable(name): as_json(value) for name, value in record.fields.items()}
    return {name: list(map(storable, own)) if isinstance(own, list) else own for name, own in values.items()}


def field_key(name: str) -> str:
    """A field's name as a key of JSON, in which dots and brackets have a meaning.

    >>> field_key("year"), field_key("a.b[]"), field_name(field_key("a.b[]")), field_name(field_key("x61"))
    ('year', 'x612e625b5d', 'a.b[]', 'x61')
    """
    return name if _PLAIN.fullmatch(name) else "x" + storable(name).encode().hex()


def field_name(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else bytes.fromhex(key[1:]).decode()


def record_of(known: Mapping[str, Any]) -> Record:
    """A record whose fields were stored by their keys."""
    fields = {field_name(key): value for key, value in known["fields"].items()}
    return Record.stored({**known, "fields": fields}, known["title"], known["text"])


def word_key(word: str) -> str:
    """
    >>> word_key("nut"), len(word_key("n" * 50_000))
    ('nut', 64)
    """
    return word if len(word) <= LONGEST_WORD else hashlib.sha256(word.encode()).hexdigest()


def with_fields(about: About, known: Mapping[str, str]) -> About:
    """The same with fields that another writer has added, and names that every database can keep."""
    return replace(about, fields={**known, **{storable(name): kind for name, kind in about.fields.items()}})


class OpenFolders:
    """Folders that this process has open, each once, whatever the number of stores that use it."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Any, list[object]]] = {}  # the client of each, and its stores
        self._opening = threading.Lock()

    def open(self, folder: str, store: object, client: Callable[[], Any]) -> Any:
        """The client of a folder for one more store. client: makes it for the first one."""
        with self._opening:
            if folder not in self._open:
                self._open[folder] = (client(), [])
            known, stores = self._open[folder]
            stores.append(store)
            return known

    def close(self, folder: str, store: object, end: Callable[[Any], None]) -> None:
        """One store less; after the last one, `end` closes the client."""
        with self._opening:
            known, stores = self._open.get(folder, (None, []))
            if any(one is store for one in stores):
                stores[:] = [one for one in stores if one is not store]
                if not stores:
                    self._open.pop(folder)
                    end(known)


def in_batches(items: Any, size: int) -> Iterator[Any]:
    """
    >>> list(in_batches("abcde", 2))
    ['ab', 'cd', 'e']
    """
    for start in range(0, len(items), size):
        yield items[start : start + size]
