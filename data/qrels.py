"""MS MARCO's tab-separated files: judgements (qid 0 pid relevance), queries (qid text), the collection (pid text)."""

from collections.abc import Iterator
from pathlib import Path

from ..core.errors import DataError, shorten
from .lines import read_lines
from .schema import Document, Qrel


def read_qrels(path: str | Path) -> Iterator[Qrel]:
    """Judgements, four columns between white space: `1048585  0  7187158  1`."""
    for number, line in read_lines(Path(path)):
        columns = line.split()
        if len(columns) != 4:
            raise DataError(f"{path}:{number}: expected 4 columns (qid 0 pid relevance), got {len(columns)}")
        qid, _, pid, relevance = columns
        try:
            yield Qrel(qid, pid, int(relevance))
        except ValueError:
            raise DataError(
                f"{path}:{number}: field 'relevance' must be a whole number, got {shorten(relevance)}"
            ) from None


def read_collection(path: str | Path) -> Iterator[Document]:
    """A collection of passages: `pid <tab> text`; the passage's title is its id."""
    for _, pid, text in _pairs(Path(path), "pid"):
        yield Document(pid, text)


def read_query_texts(path: str | Path) -> dict[str, str]:
    """Queries by their id: `qid <tab> text`. An id that comes twice is an error."""
    texts: dict[str, str] = {}
    for number, qid, text in _pairs(Path(path), "qid"):
        if qid in texts:
            raise DataError(f"{path}:{number}: field 'qid' repeats {qid!r}")
        texts[qid] = text
    return texts


def _pairs(path: Path, name: str) -> Iterator[tuple[int, str, str]]:
    for number, line in read_lines(path):
        key, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{path}:{number}: expected 2 columns ({name} <tab> text), found no tab")
        if not key.strip():
            raise DataError(f"{path}:{number}: field {name!r} is empty")
        yield number, key, text
