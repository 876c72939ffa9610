"""Search that answers at once: the query side of a model as one file, for which torch is enough.

To import transformers and sentence-transformers and to open a model with them takes seconds, a query a few hundredths
of one. So `boolbert search` keeps what a model computes for a query as a TorchScript file in the user's cache, and
asks that from the second call on. Its numbers are the model's own. A file is used only while the model's files, this
package's and torch's version are those that it was made with.
"""

import hashlib
import importlib.metadata
import io
import json
import math
import shutil
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from boolbert.boolean import OPERATORS, multi_hot
from boolbert.files import cache_root, read_object, whole_file, write_json
from boolbert.retrieval.encoders import encoder_parts
from boolbert.retrieval.index import Index, default_index_folder, document_encoder_of, is_index
from boolbert.retrieval.kernels import quick_kernels
from boolbert.retrieval.models import (
    READING_FILE,
    SearchModel,
    bool_bert,
    newest_run,
    no_warnings,
    note_on,
    run_note,
    side_modules,
    twin_of,
)

from .searcher import BoolSearcher, Found, QueryVectors, is_store

PROGRAM, TOKENIZER, SETTINGS = "query.pt", "tokenizer.json", "quick.json"
KEPT = 4  # models
MODEL_DECIDES = -1  # in `operators` and `not_scope`
# What is asked before a file is kept: answers to these have to be those of the model that it was made from.
CHECKED = ("islands", "films set in Vietnam but not about war", "a or b", "words " * 600)


@dataclass(frozen=True)
class QuickModel:
    """What a search needs to know of a model that is not opened; the first fields are a `SearchModel`'s."""

    name: str | None
    note: str
    trained: bool
    document_encoder: str
    prompt: str
    is_cosine: bool
    excludes: bool
    folder: Path  # of the program


class QuickSearcher(BoolSearcher):
    """A `BoolSearcher` that asks a stored program instead of the model, on the CPU."""

    model: QuickModel  # type: ignore[assignment]

    def __init__(self, model: QuickModel, index: Index):
        from tokenizers import Tokenizer

        self.model, self.index = model, index
        index.check_model(model)
        self._program: Any = torch.jit.load(str(model.folder / PROGRAM), map_location="cpu")
        self._tokenizer = Tokenizer.from_file(str(model.folder / TOKENIZER))

    @property
    def is_boolean(self) -> bool:
        return True

    @property
    def _excludes(self) -> bool:
        return self.model.excludes

    @property
    def prompt(self) -> str:
        return self.model.prompt

    @property
    def _is_cosine(self) -> bool:
        return self.model.is_cosine

    @property
    def _device(self) -> str:
        return "cpu"

    @cached_property
    def _offset_tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.model.folder / TOKENIZER))
        tokenizer.no_truncation()
        return tokenizer

    def spans(self, text: str) -> list[tuple[int, int]]:
        return self._offset_tokenizer.encode(text).offsets

    def _labels(self, operators: Sequence[Any] | None) -> list[int] | None:
        return None if operators is None else list(multi_hot(operators))

    def _tokens(self, query: str) -> Any:
        return self._tokenizer.encode(self.prompt + query)

    def _length(self, tokens: Any) -> int:
        return len(tokens.ids)

    def _look_at(self, tokens: Any, labels: Sequence[int] | None, not_scope: Sequence[int] | None) -> Found:
        return self._look_and_encode(tokens, labels, not_scope, None)

    @quick_kernels()
    def _look_and_encode(
        self,
        tokens: Any,
        labels: Sequence[int] | None,
        not_scope: Sequence[int] | None,
        not_weight: float | None,
    ) -> Found:
        inputs = torch.tensor([tokens.ids]), torch.tensor([tokens.attention_mask]), torch.tensor([tokens.type_ids])
        row = [MODEL_DECIDES] * len(OPERATORS) if labels is None else list(labels)
        inside = [MODEL_DECIDES] * len(tokens.ids) if not_scope is None else list(not_scope)
        weight = math.nan if not_weight is None else not_weight
        with torch.inference_mode(), torch.jit.optimized_execution(False):
            found = self._program(*inputs, torch.tensor([row]), torch.tensor([inside]), torch.tensor([weight]))
        cues, operators, scope, vectors, exists, wanted, excluded, search_vectors, penalty = found
        keeps_apart = penalty.numel() > 0 and self._is_cosine
        parts = QueryVectors.of(
            vectors[0][exists[0]].numpy(),
            wanted[0].numpy(),
            excluded[0].numpy() if bool(excluded.any()) else None,
            (search_vectors if keeps_apart else vectors)[0][exists[0]].numpy(),
            tuple(penalty[0].tolist()) if keeps_apart else None,
        )
        return Found(operators[0].tolist(), torch.sigmoid(cues[0].double()).numpy(), _scope(scope), parts)


def quick_searcher(name: str | None, index: str | None, device: str | None) -> QuickSearcher | None:
    """A searcher for a model's folder, or as without a name; None where nothing is stored that could be used."""
    if device not in (None, "cpu") or (index is not None and is_store(index)):
        return None
    opened = None if index is None else Index(index)
    try:
        model = _stored(name if opened is None or name is not None else opened.model)
        if model is None:
            return None
        if opened is None:
            folder = default_index_folder(model)
            if not is_index(folder):
                return None
            opened = Index(folder)
        return QuickSearcher(model, opened) if opened.fits(model) else None
    except Exception:  # whatever is wrong with a cache, the model itself can be opened, or says what is wrong
        return None


def keep(searcher: BoolSearcher) -> None:
    """Store what a searcher's model computes for a query, for `quick_searcher`."""
    model, index = searcher.model, searcher.index
    if model.bert is None or model.path is None or torch.device(searcher._device).type != "cpu":
        return
    if not isinstance(index, Index):
        return
    home = _home(model.path if model.name is not None else None)
    # No room, no permission, a model that TorchScript cannot hold: without the file a search takes longer, that is all.
    with suppress(Exception), no_warnings():
        home.mkdir(parents=True, exist_ok=True)
        (home / SETTINGS).unlink(missing_ok=True)
        with whole_file(home / PROGRAM) as aside, aside.open("wb") as file:
            file.write(_program_of(model))
        with whole_file(home / TOKENIZER) as aside:
            aside.write_text(_tokenizer_of(model), encoding="utf-8")
        folder = Path(model.path).resolve()
        settings = {
            "path": str(folder),
            "made_with": _made_with(folder),
            "note": model.note,
            "trained": model.trained,
            "document_encoder": document_encoder_of(model),
            "prompt": searcher.prompt,
            "is_cosine": searcher._is_cosine,
            "excludes": searcher._excludes,
        }
        stored = _as_model(model.name, settings, home)
        if _agree(QuickSearcher(stored, index), searcher):
            write_json(home / SETTINGS, settings)
        _forget_the_oldest(home.parent)


def _forget_the_oldest(root: Path) -> None:
    """A program is as large as its model: only those that were made last are kept."""
    made = sorted(root.iterdir(), key=lambda home: home.stat().st_mtime_ns)
    for home in made[:-KEPT]:
        shutil.rmtree(home, ignore_errors=True)


def _stored(name: str | None) -> QuickModel | None:
    """The stored model of a folder, of the newest run, or the default one."""
    note = None
    if name is not None:
        if not Path(name).is_dir():
            return None
        note = note_on(name, is_boolean=True)
    elif (run := newest_run()) is not None:
        name, note = str(run.folder), run_note(run)
    home = _home(name)
    settings = read_object(home / SETTINGS)
    if settings["made_with"] != _made_with(Path(settings["path"])):
        return None
    return _as_model(name, settings if note is None else {**settings, "note": note}, home)


def _as_model(name: str | None, settings: dict[str, Any], home: Path) -> QuickModel:
    names = ("note", "trained", "document_encoder", "prompt", "is_cosine", "excludes")
    return QuickModel(name, **{field: settings[field] for field in names}, folder=home)


def _home(name: str | None) -> Path:
    """Where a model's program is kept; None is the default model."""
    key = "" if name is None else str(Path(name).resolve())
    return cache_root() / "quick" / hashlib.sha256(key.encode()).hexdigest()[:16]


def _made_with(folder: Path) -> str:
    """Changes with any file of the model, of this package's that compute, and with torch and transformers."""
    package = Path(__file__).parent.parent
    files = [*sorted(package.glob("*_boolbert.py")), Path(__file__), READING_FILE]
    for part in encoder_parts(folder):
        files += sorted(file for file in part.iterdir() if file.suffix in (".json", ".txt", ".model", ".safetensors"))
    stamps = [[str(file), (status := file.stat()).st_size, status.st_mtime_ns] for file in files]
    versions = [importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers")]
    return hashlib.sha256(json.dumps([stamps, versions]).encode()).hexdigest()


class _Query(nn.Module):
    """A query's tokens to all that a search asks for."""

    def __init__(self, encoder: Any):
        super().__init__()
        self.encoder = encoder
        self.bert: Any = bool_bert(encoder)

    def forward(
        self, ids: Tensor, mask: Tensor, types: Tensor, operators: Tensor, not_scope: Tensor, not_weight: Tensor
    ) -> Any:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types, "operators": operators}
        if self.bert.scope_reader is not None:
            inputs["not_scope"] = not_scope
        out = self.encoder({**inputs, "not_weight": not_weight, "task": "query"}, task="query")
        reading = ("cue_logits", "operators", "scope")
        names = ("query_vectors", "query_mask", "wanted_embedding", "excluded_embedding", "search_vectors", "penalty")
        return tuple(out.get(name, ids.new_empty(0)) for name in (*reading, *names))


def _program_of(model: SearchModel) -> bytes:
    encoder = twin_of(model.encoder).eval()
    for part in encoder.modules():
        for name, weight in list(part.named_parameters(recurse=False)):
            setattr(part, name, nn.Parameter(weight, requires_grad=False))  # what learns cannot be a constant
    composer: Any = bool_bert(encoder).composer  # type: ignore[union-attr]
    composer.excludes = torch.tensor(composer.excludes)  # TorchScript has no Tensor & bool
    ids = torch.ones(1, 7, dtype=torch.long)
    unknown = torch.full((1, len(OPERATORS)), MODEL_DECIDES), torch.full_like(ids, MODEL_DECIDES)
    example = (ids, ids, ids * 0, *unknown, torch.tensor([math.nan]))
    query = _Query(encoder).eval()
    buffer = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        # The file holds what was computed for this example; `_agree` finds out whether that holds for others. Traced as
        # a function its weights are constants: it is made in half the time of a module, and opened in a third.
        torch.jit.save(torch.jit.trace(lambda *inputs: query(*inputs), example, check_trace=False), buffer)
    return buffer.getvalue()


def _tokenizer_of(model: SearchModel) -> str:
    from tokenizers import Tokenizer

    first = side_modules(model.encoder, "query")[0]
    tokenizer = Tokenizer.from_str(first.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_padding()
    tokenizer.enable_truncation(first.max_seq_length)
    return tokenizer.to_str()


def _agree(quick: QuickSearcher, searcher: BoolSearcher) -> bool:
    """Whether both read and encode alike."""
    for query in CHECKED:
        readings = [one.read(query) for one in (quick, searcher)]
        if readings[0] != readings[1]:
            return False
        found, expected = (one._encode(readings[0], None) for one in (quick, searcher))
        for one, other in zip(found, expected, strict=True):
            if one is None or other is None:
                if one is not other:
                    return False
            elif not np.allclose(one, other, atol=1e-5):
                return False
    return True


def _scope(scope: Tensor) -> Any:
    return scope[0].double().numpy() if scope.numel() else None
