"""Which model answers: the one named, the newest run under ./runs, or a fresh Bool-BERT on the default encoder."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.configuration_boolbert import BoolBertConfig
from boolbert.retrieval.models import bool_bert, load_encoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

RUNS = Path("runs")
RETRIEVAL = ("quest", "boolquestions")  # stages that train a retriever; they come before a pretrained encoder
UNTRAINED = (
    "NOTE: the Boolean parts of this model are UNTRAINED. Operators come from the cue lexicon, and results are nearly "
    "plain BERT's. Train it with `boolbert demo`, or give --model."
)


@dataclass(frozen=True)
class SearchModel:
    """A dual encoder, the name that loads it again, and whether its Boolean parts have learned anything."""

    name: str | None  # None: the default encoder
    encoder: "SentenceTransformer"
    note: str
    trained: bool = True

    @property
    def bert(self) -> Any | None:
        """The Bool-BERT of the query side; None for a plain encoder."""
        return bool_bert(self.encoder)


def load_model(name: str | Path | None = None, *, runs: Path = RUNS, device: str | None = None) -> SearchModel:
    """The model of a folder or Hub id. Without a name the newest finished run, else a fresh Bool-BERT."""
    _quieten()
    if name is not None:
        encoder = load_encoder(str(name), device=device, quiet=True)
        kind = "Bool-BERT" if bool_bert(encoder) is not None else "a plain encoder, without Boolean-aware attention"
        return SearchModel(str(name), encoder, f"Model: {name}, {kind}")
    run = newest_run(runs)
    if run is not None:
        note = f"Model: {run}, {_history(run)}"
        return SearchModel(str(run), load_encoder(str(run), device=device, quiet=True), note)
    return fresh_model(device)


def fresh_model(device: str | None = None, seed: int = 0) -> SearchModel:
    """The default encoder with new, untrained Boolean-aware attention on its query side."""
    import torch
    from transformers.utils import logging as transformers_logging

    from boolbert.retrieval.encoders import resolve_encoder
    from boolbert.sentence_boolbert import BoolBertSentenceTransformer

    default = resolve_encoder()
    plain = load_encoder(default.path, device=device, quiet=True)
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # that the new weights are new is the point
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            encoder = BoolBertSentenceTransformer.from_sentence_transformer(plain, device=str(plain.device))
    finally:
        transformers_logging.set_verbosity(level)
    return SearchModel(None, encoder.eval(), f"{default.note}\n{UNTRAINED}", trained=False)


def newest_run(runs: Path = RUNS) -> Path | None:
    """The Bool-BERT run under `runs` that was finished last; retrievers come before pretrained encoders."""
    found = []
    for metrics in runs.glob("**/metrics.json"):
        folder = metrics.parent
        script = _read(folder / "args.json").get("script")
        boolean = _read(folder / "config.json").get("model_type") == BoolBertConfig.model_type
        if script and boolean and (folder / "modules.json").exists():
            found.append((script in RETRIEVAL, metrics.stat().st_mtime, folder))
    return max(found, default=(False, 0.0, None))[2]


def _history(run: Path) -> str:
    """
    >>> _history(Path("no/such/run"))
    'trained by ?'
    """
    record = _read(run / "args.json")
    data = record.get("arguments", {}).get("data") or "the embedded data"
    return f"trained by {record['script']} on {data}" if "script" in record else "trained by ?"


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _quieten() -> None:
    """Searching says what it found, not what its libraries load."""
    for name in ("sentence_transformers", "transformers", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
