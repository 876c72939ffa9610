"""Which systems a comparison holds: those that need no training, trained runs, and models by name."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.core.arguments import flag
from boolbert.core.errors import BoolBertError, EvaluationError
from boolbert.core.runs import Run, finished_runs
from boolbert.data.tasks import Task
from boolbert.eval.systems import BM25, NOT_WEIGHT, Decomposition, Dense, Faiss, Subtraction, System
from boolbert.retrieval.encode import encode_corpus
from boolbert.retrieval.fingerprints import model_fingerprint
from boolbert.retrieval.models import OPERATOR_SOURCES, bool_bert, load_encoder
from boolbert.retrieval.shards import Shards

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_SEED = re.compile(r"(?:^|[-_.])(?:seed|s)[-_]?\d+$", re.IGNORECASE)
UNTRAINED = "Untrained encoder"


@dataclass
class Settings:
    """How systems are built; the flags of a comparison."""

    conjunction: str = flag("sum", "AND of a decomposition: sum or min")
    not_weight: float = flag(NOT_WEIGHT, "weight of the excluded part of a decomposition")
    faiss: str | None = flag(None, "search each dual encoder through this FAISS index too, such as HNSW32,Flat")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")
    precision: str = flag("float32", "of the models: float32, float16 or bfloat16")
    storage: str = flag("float32", "of the document vectors: float32 or float16")


class Lineup:
    """Builds systems over one task. Each document encoder encodes the corpus once, into a folder of `folder`."""

    def __init__(self, task: Task, folder: Path, settings: Settings | None = None):
        self.task, self.folder, self.settings = task, folder, settings or Settings()
        self._vectors: dict[str, Shards] = {}
        self.left_out: list[str] = []  # systems that cannot be built for this task, and why

    def vectors(self, model: "SentenceTransformer") -> Shards:
        key = model_fingerprint(model, "document")
        if key not in self._vectors:
            storage = self.settings.storage
            self._vectors[key] = encode_corpus(model, self.task.corpus, self.folder / key, storage=storage)
        return self._vectors[key]

    def load(self, name: str | None, **options: Any) -> "SentenceTransformer":
        return load_encoder(name, device=self.settings.device, precision=self.settings.precision, **options)

    def untrained(self, name: str | None) -> Iterator[System]:
        """Without training: the encoder as it is, with queries split into parts, and BM25."""
        model = self.load(name)
        if bool_bert(model) is None:
            yield from self.dense(UNTRAINED, model)
            yield from self.decompositions(Dense(UNTRAINED, model, self.vectors(model)))
        else:
            yield from self.dense("Encoder", model)
        yield from self.bm25()

    def dense(self, name: str, model: "SentenceTransformer") -> Iterator[System]:
        """A dual encoder, a Bool-BERT once for each way its gate can be set; also through FAISS, if asked for."""
        vectors, factory = self.vectors(model), self.settings.faiss
        gates: Sequence[str | None] = [None] if bool_bert(model) is None else OPERATOR_SOURCES
        for gate in gates:
            title = name if gate is None else f"{name}, gate {gate}"
            if gate == "given" and not self._all_known(title, "metadata.template", "operators"):
                continue
            yield Dense(title, model, vectors, gate)
            if factory is not None:
                yield Faiss(f"{title}, FAISS {factory}", model, vectors, gate, factory=factory)

    def decompositions(self, plain: Dense, on: str = "") -> Iterator[System]:
        """Queries split into their parts, on any plain encoder."""
        conjunction, weight = self.settings.conjunction, self.settings.not_weight
        if self._all_known("Decomposition, gold atoms", "original_query", "parts"):
            yield Decomposition(f"Decomposition, gold atoms{on}", plain, conjunction, weight, gold=True)
        yield Decomposition(f"Decomposition, parsed atoms{on}", plain, conjunction, weight)
        yield Subtraction(f"Embedding subtraction{on}", plain, weight)

    def bm25(self) -> Iterator[System]:
        try:
            yield BM25(self.task.corpus)
        except BoolBertError as error:  # not installed
            self.left_out.append(f"BM25 is left out: {error}")

    def _all_known(self, system: str, field: str, attribute: str) -> bool:
        missing = sum(getattr(question, attribute) is None for question in self.task.questions)
        line = f"{system} is left out: {missing:,} of {len(self.task):,} queries have no {field}"
        if missing and line not in self.left_out:
            self.left_out.append(line)
        return not missing


def find_runs(root: Path, data: str | None) -> list[Path]:
    """Finished run folders under `root` that were trained on this data."""
    runs = (run for run in finished_runs(root) if run.script == "quest" and run.data == data)
    return [run.folder for run in runs if run.has_retriever]


def chosen_runs(folders: Sequence[str], data: str | None) -> list[Path]:
    """Folders that hold a trained dual encoder; of a folder of runs, those below it that were trained on this data.
    Anything else is an error."""
    below = {folder: [] if Run(folder).has_retriever else find_runs(Path(folder), data) for folder in folders}
    for folder in (folder for folder in folders if not below[folder]):
        run = Run(folder)
        if not run.has_retriever:
            raise EvaluationError(f"--runs {folder}: no trained model there (modules.json is missing)")
        if run.script is not None and not run.finished:
            raise EvaluationError(
                f"--runs {folder}: this run is not finished, so its weights may be an older run's; "
                "let it finish (--resume), or give another folder"
            )
    return [path for folder in folders for path in below[folder] or [Path(folder)]]


def by_seed(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Run folders whose names differ only in the seed at their end are seeds of one system.

    >>> {name: len(seeds) for name, seeds in by_seed([Path("a-seed0"), Path("a-seed42"), Path("b")]).items()}
    {'a': 2, 'b': 1}
    >>> list(by_seed([Path("runs/quest/seed-0"), Path("runs/quest/seed-42"), Path("runs/movies2")]))
    ['quest', 'movies2']
    """
    groups: dict[str, list[Path]] = {}
    for folder in folders:
        name = _SEED.sub("", folder.name)
        key = str(folder.parent / name) if name else str(folder.parent)
        groups.setdefault(key, []).append(folder)
    short = {key: Path(key).name for key in groups}
    unique = len(set(short.values())) == len(short)
    return {short[key] if unique else key: seeds for key, seeds in groups.items()}
