"""A user's documents: read from any format, with title and text joined into what is encoded."""

import hashlib
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from ...core.checks import check_flags
from ...core.errors import DataError, shorten
from ...core.terminal import fitted, printable
from ..corpus import Corpus
from ..rows import Row
from ..schema import Document, kind_of
from .columns import Value, column_values, find_columns
from .fields import SAMPLE, Layout, find_layout
from .formats import RowSource, find_rows
from .markup import without_html
from .passages import WORDS, Passages, is_long

_NAME_WORDS = 8
MOST_FIELDS = 10_000
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # which not every vector database finds again in an id


class NoDocuments(DataError):
    """A source that has rows no more, or none with a word in it."""


@dataclass(frozen=True, slots=True)
class OwnDocument:
    """A document as it was understood. `name` is unique in its collection; `content` is what is encoded.

    `whole`: of a passage, the id or name of the document it was cut from. `columns`: what filters ask for.
    """

    name: str
    title: str
    text: str
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    id: str | None = None
    whole: str | None = None
    columns: Mapping[str, Value] = field(default_factory=dict)

    @property
    def title_and_text(self) -> str:
        return joined(self.title, self.text)

    @property
    def content(self) -> str:
        """Title, the values of structured fields that are in neither, and text."""
        described = self.title_and_text
        facts = "; ".join(fact for name, values in self.fields.items() if (fact := _fact(name, values, described)))
        if not facts:
            return described
        return f"{self.title} ({facts}). {self.text}" if described != self.text else f"{described} ({facts})"


def joined(title: str, text: str) -> str:
    """Title and text as one text. A text that begins with its title keeps it once.

    >>> joined("Chocolate cake", "Melt the butter."), joined("Alien (film)", "Alien is a 1979 film.")
    ('Chocolate cake. Melt the butter.', 'Alien is a 1979 film.')
    """
    bare = title.split(" (")[0].strip()
    if not title or text.casefold().startswith(bare.casefold() or title.casefold()):
        return text or title
    if not text:
        return title
    return f"{title}{'' if title[-1] in '.!?:' else '.'} {text}"


def _fact(name: str, values: Iterable[str], described: str) -> str:
    """What a field says and the text does not: "colour: black", or "vegan" for a column of true and false.

    >>> _fact("tags", ["sale", "kids"], "A tent for kids."), _fact("vegan", ["yes"], "A soup.")
    ('tags: sale', 'vegan')
    """
    shown = name.replace("_", " ")
    if list(values) == ["yes"]:
        return "" if shown.casefold() in described.casefold() else shown
    more = [value for value in values if value.casefold() not in described.casefold()]
    return f"{shown}: {', '.join(more)}" if more else ""


@dataclass
class Report:
    """What was noticed while reading."""

    documents: int = 0
    empty: list[str] = field(default_factory=list)  # places of rows without a word
    repeated: list[str] = field(default_factory=list)  # places of rows whose content came before
    renamed: int = 0  # titles that came before
    long: int = 0

    def lines(self, passages: Passages | None = None) -> list[str]:
        """One line for each thing that the user should know."""
        notes = []
        if self.empty:
            notes.append(f"{len(self.empty):,} rows hold no words and are left out (first: {self.empty[0]})")
        if self.repeated:
            notes.append(
                f"{len(self.repeated):,} documents repeat an earlier one word for word (first: {self.repeated[0]})"
            )
        if self.renamed:
            notes.append(f"{self.renamed:,} titles come more than once; the later ones get their id or a number")
        if self.long and passages is None:
            notes.append(
                f"{self.long:,} of {self.documents:,} documents are longer than {WORDS} words and will be cut there; "
                "--passages indexes all of their text"
            )
        return notes


class OwnDocuments:
    """A user's documents, one at a time, as often as needed.

    `source` is a path, a Hub data set, a `RowSource`, or documents in memory (`Document`s, dictionaries or texts).
    `follow_links`: read links in a folder that lead out of it too.
    """

    def __init__(
        self,
        source: str | Path | RowSource | Iterable[Document | Mapping[str, object] | str],
        *,
        text: str | None = None,
        title: str | None = None,
        id: str | None = None,
        atoms: str | None = None,
        passages: Passages | None = None,
        follow_links: bool = False,
        progress: bool = True,
    ):
        check_flags(follow_links=follow_links, progress=progress)
        self._rows: Callable[..., Iterable[Row]]
        if isinstance(source, str | Path):
            names = [name for given in (text, title, id, atoms) if given for name in given.split(",")]
            file = find_rows(source, names, follow_links=follow_links)
            self.name, self._rows = file.name, file.rows
        elif isinstance(source, RowSource):
            self.name, self._rows = source.name, source.rows
        else:
            memory = [_row(number, item) for number, item in enumerate(source, start=1)]
            self.name, self._rows = "documents", lambda progress: memory
        self.progress = progress
        self.passages = passages
        sample = [_plain(_checked(row)) for row in islice(self._rows(progress=False), SAMPLE)]
        if not sample:
            raise NoDocuments(f"{self.name}: there are no documents in it")
        kind = kind_of(sample[0].values)
        if text is None and kind in ("queries", "questions", "triplets"):
            raise DataError(f"{self.name}: holds {kind}; expected documents with title and text")
        self.layout: Layout = find_layout(sample, text=text, title=title, id=id, atoms=atoms)
        self.columns: dict[str, str] = find_columns(sample, self.layout)  # and the kind of each
        self.report = Report()

    def __iter__(self) -> Iterator[OwnDocument]:
        """The documents in their order; `report` then tells what was noticed."""
        report = Report()
        contents: set[bytes] = set()
        names: dict[bytes, int] = {}
        wholes: dict[bytes, int] = {}
        for row in self._rows(progress=self.progress):
            document = self._document(row)
            content = document.content
            if not any(map(str.isalnum, content)):
                report.empty.append(row.where)
                continue
            key = _digest(" ".join(content.split()).casefold())
            report.repeated += [row.where] if key in contents else []
            contents.add(key)
            report.long += is_long(content)
            whole = document.id or document.name
            if self.passages is not None and not document.id:
                key = _digest(whole)
                wholes[key] = count = wholes.get(key, 0) + 1
                whole = whole if count == 1 else f"{whole} [{count}]"
            for part in self._parts(document, whole):
                report.documents += 1
                key = _digest(part.name)
                names[key] = count = names.get(key, 0) + 1
                if count > 1:
                    report.renamed += 1
                    part = replace(part, name=f"{part.name} [{part.id or count}]")
                yield part
        if not report.documents:
            raise NoDocuments(f"{self.name}: all {len(report.empty):,} rows are empty (first: {report.empty[0]})")
        self.report = report

    def corpus(self) -> Corpus:
        """All documents in memory, as every other part of the project takes them: name, and title with text."""
        return Corpus((Document(document.name, document.content) for document in self), name=self.name)

    def preview(self) -> str:
        """How the first three documents are understood."""
        lines = [printable(f"{self.name}: {self.layout}")]
        for number, document in enumerate(islice(iter(self), 3), start=1):
            lines.append(f"  {number}. {fitted(document.name, 100)}: {fitted(document.text, 100)}")
            sets = "; ".join(f"{name}: {', '.join(values)}" for name, values in document.fields.items())
            lines += [f"     {fitted(sets, 100)}"] if sets else []
        return "\n".join(lines)

    def _document(self, row: Row) -> OwnDocument:
        layout = self.layout
        id = row.identifier(layout.id) if layout.id and row.get(layout.id) is not None else None
        row = _plain(row)
        title = _text(row, layout.title) if layout.title else ""
        text = "\n".join(filter(None, (_text(row, name) for name in layout.texts)))
        if layout.id and id and CONTROL.search(id):
            raise row.error(layout.id, f"is an id and must not hold control characters, got {shorten(id)}")
        name = title or id or " ".join(text.split(None, _NAME_WORDS)[:_NAME_WORDS])
        columns = column_values(row, self.columns, layout)
        return OwnDocument(name, title, text, layout.values(row), id, columns=columns)

    def _parts(self, document: OwnDocument, whole: str) -> Iterator[OwnDocument]:
        if self.passages is None or not is_long(document.content, self.passages.words):
            yield document
            return
        pieces = list(self.passages.split(document.text))
        for number, piece in enumerate(pieces, start=1):
            name = f"{document.name} ({number} of {len(pieces)})"
            id = document.id and f"{document.id} ({number} of {len(pieces)})"
            yield replace(document, name=name, text=piece, id=id, whole=whole)


def documents_of(options: Namespace, source: RowSource | None = None) -> OwnDocuments:
    """The documents that a command's flags name, or those of a source. A name that is not there is an error at once."""
    passages = Passages() if options.passages else None
    fields = {name: getattr(options, name) for name in ("text", "title", "id", "atoms")}
    return OwnDocuments(source or options.documents, passages=passages, follow_links=options.follow_links, **fields)


def _text(row: Row, name: str) -> str:
    """A field as text; a number is written out, a list is joined, nothing is an empty text."""
    value = row.get(name)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value).strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return (row.optional_text(name) or "").strip()


def _plain(row: Row) -> Row:
    """The row without HTML."""
    return replace(row, values=without_html(row.values))


def _checked(row: Row) -> Row:
    if len(row.values) > MOST_FIELDS:
        raise DataError(f"{row.where}: has {len(row.values):,} fields; at most {MOST_FIELDS:,} are read")
    return row


def _row(number: int, item: object) -> Row:
    if isinstance(item, Document):
        item = {"title": item.title, "text": item.text}
    values = {"text": item} if isinstance(item, str) else item
    if not isinstance(values, Mapping):
        raise DataError(f"documents item {number}: must be a text or an object with a text, got {type(item).__name__}")
    return Row("documents", number, dict(values), unit=" item ")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
