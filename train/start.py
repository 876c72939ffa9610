"""What a run starts from: a plain BERT, a Bool-BERT of stage 1, or both encoders of an earlier run."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BertConfig, BertModel, PreTrainedModel
from transformers.utils import logging

from boolbert import BoolBertConfig, BoolBertModel
from boolbert.retrieval.encoders import Encoder, resolve_encoder
from boolbert.sentence_boolbert import DOCUMENT_FOLDER
from boolbert.train.grad_cache import reseed
from boolbert.train.outputs import METRICS


@dataclass(frozen=True)
class Start:
    """An encoder's folder, and how its vectors are made and compared."""

    encoder: Encoder

    @property
    def path(self) -> Path:
        return Path(self.encoder.path)

    @property
    def is_boolean(self) -> bool:
        return json.loads((self.path / "config.json").read_text(encoding="utf-8"))["model_type"] == "boolbert"

    @property
    def plain(self) -> Path:
        """The plain BERT: the document encoder of an earlier run, else the encoder itself."""
        documents = self.path / DOCUMENT_FOLDER
        return documents if documents.is_dir() else self.path

    def record(self) -> dict[str, Any]:
        return {"encoder": self.encoder.path, "kind": self.encoder.kind, "documents": str(self.plain)}

    def tokenizer(self) -> Any:
        tokenizer = AutoTokenizer.from_pretrained(self.path)
        tokenizer.model_max_length = 512
        return tokenizer

    def query_encoder(self, *, baseline: bool, gate: str | None = None, seed: int = 0) -> PreTrainedModel:
        """A Bool-BERT, whose new parts are drawn from the seed; or, as the baseline, a plain BERT."""
        if baseline:
            return plain_bert(self.plain if self.is_boolean else self.path)
        reseed(seed)
        settings: dict[str, Any] = {"pooling": self.encoder.pooling, **({"gate": gate} if gate else {})}
        with quiet():
            return BoolBertModel.from_pretrained(self.path, **settings)

    def document_encoder(self) -> PreTrainedModel:
        return plain_bert(self.plain)


def find_start(name: str | None, earlier: str | None = None) -> Start:
    """The encoder of this name; without one, the finished run `earlier` if there is one, else the default."""
    if name is None and earlier is not None and (Path(earlier) / METRICS).exists():
        name = earlier
    return Start(resolve_encoder(name))


def plain_bert(path: Path) -> BertModel:
    """A BERT; of a Bool-BERT, its BERT part."""
    with quiet():
        values, _ = BoolBertConfig.get_config_dict(path)
        known = BertConfig().to_dict().keys() - {"model_type", "auto_map", "architectures"}
        config = BertConfig(**{name: value for name, value in values.items() if name in known})
        return BertModel.from_pretrained(path, config=config)


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' report on weights that are new, which is what is wanted here."""
    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
