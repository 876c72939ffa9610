"""Which systems a comparison holds: those that need no training, trained runs, and models by name."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.data.tasks import Task
from boolbert.errors import EvaluationError
from boolbert.eval.systems import BM25, GATES, Decomposition, Dense, Subtraction, System, found_parts, known_parts
from boolbert.retrieval.encode import Shards, encode_corpus
from boolbert.retrieval.fingerprints import model_fingerprint
from boolbert.retrieval.models import bool_bert, load_encoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_SEED = re.compile(r"(?:^|[-_.])(?:seed|s)[-_]?\d+$", re.IGNORECASE)
UNTRAINED = "Untrained encoder"


@dataclass
class Settings:
    """How systems are built."""

    vectors: Path  # encoded corpora are kept here, one folder a document encoder
    device: str | None = None
    precision: str = "float32"
    storage: str = "float32"
    conjunction: str = "sum"
    not_weight: float = 0.3
    seed: int = 0


class Lineup:
    """Builds systems over one task; a document encoder that several systems share encodes the corpus once."""

    def __init__(self, task: Task, settings: Settings):
        self.task = task
        self.settings = settings
        self._vectors: dict[str, Shards] = {}
        self.left_out: list[str] = []  # systems that this task does not allow, and why

    def vectors(self, model: "SentenceTransformer") -> Shards:
        key = model_fingerprint(model, "document")
        if key not in self._vectors:
            folder = self.settings.vectors / key
            self._vectors[key] = encode_corpus(model, self.task.corpus, folder, storage=self.settings.storage)
        return self._vectors[key]

    def load(self, name: str | None, **options: Any) -> "SentenceTransformer":
        return load_encoder(name, device=self.settings.device, precision=self.settings.precision, **options)

    def untrained(self, name: str | None) -> Iterator[System]:
        """What needs no training: the encoder as it is, with a fresh BoolAttn, taken apart, and BM25."""
        model = self.load(name)
        plain = Dense(UNTRAINED, model, self.vectors(model)) if bool_bert(model) is None else None
        if plain is None:
            yield from self.dense("Encoder", model)
        else:
            yield plain
            fresh = self._fresh_bool_bert(model)
            if fresh is not None:
                yield fresh
            yield from self.decompositions(plain)
        yield BM25(self.task.corpus)

    def decompositions(self, plain: Dense, on: str = "") -> Iterator[System]:
        """Taking queries apart, on any plain encoder."""
        options = {"conjunction": self.settings.conjunction, "not_weight": self.settings.not_weight}
        if self._all_known("Decomposition, gold atoms", "original_query", "parts"):
            yield Decomposition(f"Decomposition, gold atoms{on}", plain, known_parts, **options)  # type: ignore[arg-type]
        yield Decomposition(f"Decomposition, parsed atoms{on}", plain, found_parts, **options)  # type: ignore[arg-type]
        yield Subtraction(f"Embedding subtraction{on}", plain, self.settings.not_weight)

    def dense(self, name: str, model: "SentenceTransformer") -> Iterator[System]:
        """A dual encoder; a Bool-BERT once for each way its gate can be set."""
        vectors = self.vectors(model)
        if bool_bert(model) is None:
            yield Dense(name, model, vectors)
            return
        for gate in GATES:
            title = f"{name}, gate {gate}"
            if gate != "given" or self._all_known(title, "metadata.template", "operators"):
                yield Dense(title, model, vectors, gate)

    def _fresh_bool_bert(self, model: "SentenceTransformer") -> System | None:
        import torch
        import transformers

        from boolbert.sentence_boolbert import BoolBertSentenceTransformer

        if not self._all_known("Fresh Bool-BERT", "metadata.template", "operators"):
            return None
        torch.manual_seed(self.settings.seed)
        verbosity = transformers.logging.get_verbosity()
        transformers.logging.set_verbosity_error()  # that the new weights are new is the point
        try:
            fresh = BoolBertSentenceTransformer.from_sentence_transformer(model, device=str(model.device))
        except ValueError as error:
            self.left_out.append(f"Fresh Bool-BERT is left out: {error}")
            return None
        finally:
            transformers.logging.set_verbosity(verbosity)
        fresh = fresh.to(model.dtype)
        return Dense("Fresh Bool-BERT, gate given", fresh.eval(), self.vectors(fresh), "given")

    def _all_known(self, system: str, field: str, attribute: str) -> bool:
        missing = sum(getattr(question, attribute) is None for question in self.task.questions)
        if missing:
            line = f"{system} is left out: {missing:,} of {len(self.task):,} queries have no {field}"
            if line not in self.left_out:
                self.left_out.append(line)
        return not missing


def find_runs(root: Path, data: str | None) -> list[Path]:
    """Finished run folders under `root` that were trained on this data."""
    found = []
    for path in sorted(root.glob("**/args.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        folder = path.parent
        trained_on = record.get("arguments", {}).get("data")
        if (folder / "modules.json").exists() and record.get("script") == "quest" and trained_on == data:
            found.append(folder)
    return found


def check_runs(folders: Sequence[str]) -> list[Path]:
    """Folders that hold a trained dual encoder; anything else is an error."""
    paths = [Path(folder) for folder in folders]
    for path in paths:
        if not (path / "modules.json").exists():
            raise EvaluationError(f"--runs {path}: no trained model there (modules.json is missing)")
    return paths


def by_seed(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Run folders whose names differ only in the seed at their end are seeds of one system.

    >>> {name: len(some) for name, some in by_seed([Path("a-seed0"), Path("a-seed42"), Path("b")]).items()}
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
    return {short[key] if unique else key: some for key, some in groups.items()}
