"""From a user's documents to a data folder in QUEST's format: documents, training and held-out queries, atoms."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ...core.checks import check_count, check_whole
from ...core.errors import DataError
from ...core.files import check_folder, whole_folder, write_text
from ..lines import write_rows
from .atoms import Sizes, choose_atoms
from .counting import Text, count_texts
from .documents import OwnDocument, OwnDocuments
from .queries import MadeQuery, QueryMaker, compose_kinds
from .sets import AtomSets, find_sets
from .wording import MEANINGS, Writer

QUERIES = 6000
FEWEST_DOCUMENTS, FEWEST_ATOMS, FEWEST_QUERIES = 20, 6, 20
DOCUMENTS = "documents.jsonl"
_ENGLISH = re.compile(r"\b(?:the|of|and|is|with|for|to|an|in|from)\b", re.IGNORECASE)
_NO_HEAD = {"documents", "docs", "texts", "files", "items", "rows"}


@dataclass
class QueryFolder:
    """A folder of queries that `make_queries` has made, and notes for its user."""

    folder: Path
    documents: int
    train: int
    dev: int
    atoms: dict[str, int]  # sort -> how many
    heads: list[str]  # what the documents are called in the queries
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        atoms = ", ".join(f"{count:,} {sort}s" for sort, count in self.atoms.items())
        made = f"{self.train:,} training and {self.dev:,} held-out queries"
        return f"{self.folder}: {made} from {self.documents:,} documents ({atoms})"


def make_queries(
    documents: OwnDocuments, folder: str | Path, *, queries: int = QUERIES, seed: int = 0, kind: str | None = None
) -> QueryFolder:
    """Write a data folder with `queries` training queries, or as many as the documents give, and held-out ones.

    `kind` is what the documents are called in the queries ("film"); without it they are asked.
    """
    check_count("queries", queries)
    check_whole("seed", seed)
    folder = Path(folder)
    if check_folder(folder).exists() and any(folder.iterdir()):
        raise DataError(f"{folder}: is there already; name a new folder for the queries")
    if queries < len(MEANINGS):
        raise DataError(f"at least {len(MEANINGS)} queries are needed, one for each template; got {queries}")
    if folder.is_dir():
        folder.rmdir()
    with whole_folder(folder) as aside:
        names = []
        with (aside / DOCUMENTS).open("w", encoding="utf-8", newline="\n") as file:
            for document in documents:
                names.append(document.name)
                file.write(_line(document))
        total, notes = len(names), documents.report.lines(documents.passages)
        if total < FEWEST_DOCUMENTS:
            raise DataError(
                f"{documents.name}: {total} documents are too few to make queries from; "
                f"at least {FEWEST_DOCUMENTS} are needed"
            )
        sizes = Sizes.of(total)

        def texts(stride: int = 1) -> Iterator[Text]:
            with (aside / DOCUMENTS).open(encoding="utf-8") as file:
                for row in map(json.loads, islice(file, 0, None, stride)):
                    yield Text(row.get("told", row["text"]), row.get("fields", {}))

        counts = count_texts(texts, total)
        heads = _heads(counts.heads, counts.looked_at, kind, documents.name)
        sets = find_sets(texts(), choose_atoms(counts, sizes, seed), counts.heads, total, sizes)
        sets = compose_kinds(sets, sizes, seed)
        if len(sets) < FEWEST_ATOMS:
            raise DataError(
                f"{documents.name}: no queries can be made, since hardly a word, name or field value occurs in "
                f"{sizes.low} to {sizes.high} of the {total:,} documents (words need spaces between them); "
                "name fields with --atoms"
            )
        held_out = min(0.3, max(0.1, 150 / len(sets)))
        made: dict[str, list[MadeQuery]] = {}
        for split, wanted in (("train", queries), ("dev", max(queries // 10, len(MEANINGS)))):
            maker = QueryMaker(sets, sizes, Writer(heads), split, seed=seed, held_out=held_out)
            made[split] = maker.make(wanted)
            _write_queries(aside / f"{split}.jsonl", made[split], sets, names)
        if len(made["train"]) < min(FEWEST_QUERIES, queries) or not made["dev"]:
            raise DataError(
                f"{documents.name}: only {len(made['train'])} queries can be made, since the {len(sets)} sets of "
                "documents found in it overlap too little; name fields with --atoms, or bring more documents"
            )
        asked = sorted({index for queries in made.values() for query in queries for index in query.atoms})
        lines = (f"{json.dumps(sets.atoms[i].key)}: {json.dumps(sets.members[i].tolist())}" for i in asked)
        write_text(aside / "atoms.json", "{\n" + ",\n".join(lines) + "\n}\n")
        if len(made["train"]) < 0.9 * queries:
            notes.append(f"{len(made['train']):,} of {queries:,} queries: the documents do not give more")
        english = [bool(_ENGLISH.search(text.content)) for text in texts(max(1, total // 500))]
        if sum(english) < 0.3 * len(english):
            notes.append("the texts do not look English; the queries are worded in English round their words")
        sorts = Counter(atom.sort for atom in sets.atoms)
        by_sort = dict(sorts.most_common())
    return QueryFolder(folder, total, len(made["train"]), len(made["dev"]), by_sort, heads, notes)


def _line(document: OwnDocument) -> str:
    content, described = document.content, document.title_and_text
    row: dict[str, Any] = {"title": document.name, "text": content, "id": document.id, "fields": document.fields}
    row["told"] = described if described != content else None  # what atoms are looked for in
    return json.dumps({key: value for key, value in row.items() if value}, ensure_ascii=False) + "\n"


def _write_queries(path: Path, queries: Sequence[MadeQuery], sets: AtomSets, names: Sequence[str]) -> None:
    def row(query: MadeQuery) -> dict[str, Any]:
        atoms = [sets.atoms[index] for index in query.atoms]
        domain, keys = atoms[0].head or "documents", [atom.key for atom in atoms]
        return {
            "query": query.text,
            "docs": [names[document] for document in query.gold],
            "original_query": query.original,
            "metadata": {"template": query.template, "domain": domain, "atoms": keys},
        }

    write_rows(path, map(row, queries))


def _heads(found: dict[str, int], looked_at: int, kind: str | None, name: str) -> list[str]:
    """What the documents are called: as given, as most of them say, as their file is called, or "document"."""
    if kind:
        return [kind.lower().removesuffix("s"), *found]
    main = next(iter(found), None)
    if main is not None and found[main] >= 0.5 * looked_at:
        return list(found)
    stem = Path(name).name.split(".")[0].lower().rpartition("_")[2]
    if stem.isalpha() and stem.endswith("s") and not stem.endswith("ss") and stem not in _NO_HEAD:
        return [stem[:-3] + "y" if stem.endswith("ies") else stem[:-1], *found]
    return ["document", *found]
