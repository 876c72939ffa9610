"""The second look at a collection: exactly which documents belong to each chosen atom."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..gold import Rows
from .atoms import Atom, Sizes
from .counting import Text
from .text_words import read_text

_TABLE_OF = {"kind": "kinds", "relation": "relations", "name": "names", "word": "words", "phrase": "phrases"}


class AtomSets:
    """Atoms with their documents, and documents with their atoms, all as arrays.

    `members[i]` are the documents that surely belong to atom i; `hints[i]` adds those that merely mention its words.
    """

    def __init__(self, atoms: Sequence[Atom], members: Sequence[Rows], hints: Sequence[Rows], documents: int):
        self.atoms = list(atoms)
        self.members = list(members)
        self.hints = list(hints)
        self.documents = documents
        # The other way round: the atoms of document d are flat[starts[d] : starts[d + 1]].
        rows = np.concatenate([np.empty(0, np.int32), *self.members])
        order = np.argsort(rows, kind="stable")
        self._flat = np.repeat(np.arange(len(self.members), dtype=np.int32), [*map(len, self.members)])[order]
        self._starts = np.searchsorted(rows[order], np.arange(documents + 1))

    def __len__(self) -> int:
        return len(self.atoms)

    def of_document(self, row: int) -> Rows:
        """The atoms that a document belongs to."""
        return self._flat[self._starts[row] : self._starts[row + 1]]


def find_sets(
    texts: Iterable[Text], atoms: Sequence[Atom], heads: Iterable[str], documents: int, sizes: Sizes
) -> AtomSets:
    """Read all documents and keep the atoms whose sets have a useful size."""
    look_up: dict[str, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    hint_of: dict[str, list[int]] = defaultdict(list)
    for index, atom in enumerate(atoms):
        for form in atom.forms:
            look_up[_TABLE_OF.get(atom.sort, "fields")][form].append(index)
        for word in atom.mentions:
            hint_of[word].append(index)
    rows = [array("i") for _ in atoms]
    hints = [array("i") for _ in atoms]
    heads = list(heads)
    head_of = np.full(documents, -1, dtype=np.int8)  # -1: the document does not say
    for row, text in enumerate(texts):
        found = read_text(text.content, heads)
        if found.head in heads:
            head_of[row] = heads.index(found.head)
        for table in _TABLE_OF.values():
            _add(row, look_up[table], getattr(found, table), rows)
        _add(row, look_up["fields"], ((name, v) for name, values in text.fields.items() for v in values), rows)
        words = found.words | found.inside_names | found.names
        hinted = {index for word in words for index in hint_of.get(word, ()) if atoms[index].mentions <= words}
        for index in hinted:
            hints[index].append(row)
    chosen: list[tuple[Atom, Rows, Rows]] = []
    for atom, own, mentioning in zip(atoms, rows, hints, strict=True):
        members = np.frombuffer(own, dtype=np.int32)
        wider = np.union1d(np.frombuffer(mentioning, dtype=np.int32), members).astype(np.int32)
        atom, members = _with_head(atom, members, heads, head_of)
        if sizes.low <= len(members) <= (sizes.wide if atom.sort in ("kind", "field") else sizes.high):
            chosen.append((atom, members, wider))
    return AtomSets([one for one, _, _ in chosen], [m for _, m, _ in chosen], [h for _, _, h in chosen], documents)


def _with_head(atom: Atom, members: Rows, heads: Sequence[str], head_of: np.ndarray) -> tuple[Atom, Rows]:
    """Ask for what most of the atom's documents are: "films about chess", and leave out the novels about it."""
    known = head_of[members]
    if atom.head or not (known >= 0).any():
        return atom, members
    counts = np.bincount(known[known >= 0], minlength=len(heads))
    head = int(counts.argmax())
    if counts[head] < 0.5 * len(members):
        return atom, members
    return replace(atom, head=heads[head]), members[(known == head) | (known < 0)]


def _add(row: int, atoms_of: dict[Any, list[int]], found: Iterable[Any], rows: Sequence[array]) -> None:
    for form in found:
        for index in atoms_of.get(form, ()):
            if not rows[index] or rows[index][-1] != row:  # two forms of one word in one document
                rows[index].append(row)
