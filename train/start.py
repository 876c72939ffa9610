"""What a run starts from: a plain BERT, a Bool-BERT of stage 1, or both encoders of an earlier run."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertModel, PreTrainedModel

from boolbert import BoolBertConfig, BoolBertModel
from boolbert.core.errors import TrainingError, first_line
from boolbert.core.files import read_json
from boolbert.core.runs import CONFIG, is_bool_bert
from boolbert.retrieval.encoders import Encoder, resolve_encoder
from boolbert.retrieval.models import no_warnings
from boolbert.sentence_boolbert import DOCUMENT_FOLDER
from boolbert.train.grad_cache import reseed
from boolbert.train.optimizer import is_boolean

KINDS = (BertConfig.model_type, BoolBertConfig.model_type)


@dataclass(frozen=True)
class Start:
    """An encoder's folder, and how its vectors are made and compared."""

    encoder: Encoder
    allow_random: bool = False  # weights that are missing may start from random ones

    @property
    def path(self) -> Path:
        return Path(self.encoder.path)

    @property
    def plain(self) -> Path:
        """The plain BERT: the document encoder of an earlier run, else the encoder itself."""
        documents = self.path / DOCUMENT_FOLDER
        return documents if documents.is_dir() else self.path

    def record(self) -> dict[str, Any]:
        return {"encoder": self.encoder.path, "kind": self.encoder.kind, "documents": str(self.plain)}

    def tokenizer(self) -> Any:
        with _one_line_errors(self.path):
            tokenizer = AutoTokenizer.from_pretrained(self.path)
        tokenizer.model_max_length = 512
        return tokenizer

    def query_encoder(
        self, *, baseline: bool, gate: str | None = None, seed: int = 0, **changes: Any
    ) -> PreTrainedModel:
        """A Bool-BERT, whose new parts are drawn from the seed; or, as the baseline, a plain BERT.

        `changes` are settings of its configuration.
        """
        if baseline:
            return self._plain_bert(self.plain if is_bool_bert(self.path) else self.path)
        reseed(seed)
        settings: dict[str, Any] = {"pooling": self.encoder.pooling, **({"gate": gate} if gate else {}), **changes}
        return self._load(BoolBertModel, self.path, **settings)

    def document_encoder(self) -> PreTrainedModel:
        return self._plain_bert(self.plain)

    def _plain_bert(self, path: Path) -> PreTrainedModel:
        """A BERT; of a Bool-BERT, its BERT part."""
        with no_warnings(), _one_line_errors(path):
            values, _ = BoolBertConfig.get_config_dict(path)
        known = BertConfig().to_dict().keys() - {"model_type", "auto_map", "architectures", "dtype"}
        config = BertConfig(**{name: value for name, value in values.items() if name in known})
        return self._load(BertModel, path, config=config)

    def _load(self, kind: type[PreTrainedModel], path: Path, **options: Any) -> PreTrainedModel:
        """Weights in float32, whatever they are stored in: an optimizer's small steps vanish in half precision."""
        # Sizes that disagree are reported below, all of them and in one line.
        options = {"dtype": torch.float32, "use_safetensors": True, "ignore_mismatched_sizes": True, **options}
        loaded: Any
        with no_warnings(), _one_line_errors(path):
            loaded = kind.from_pretrained(path, output_loading_info=True, **options)
        model, report = loaded
        problems = _problems(report)
        if problems and not self.allow_random:
            raise TrainingError(
                f"--encoder {path}: its weights are not those of its {CONFIG}: {problems}; "
                "take another encoder, or --allow_random to start these from random weights"
            )
        return model


def find_start(name: str | None, *, allow_random: bool = False) -> Start:
    """The encoder of this name; without one, the default."""
    try:
        encoder = resolve_encoder(name)
    except (OSError, ValueError) as error:
        raise TrainingError(f"--encoder {error}" if name is not None else str(error)) from None
    config = read_json(Path(encoder.path) / CONFIG)
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in KINDS:
        raise TrainingError(f"--encoder {encoder.path}: must be a BERT or Bool-BERT, and is {kind or 'unknown'}")
    return Start(encoder, allow_random)


def _problems(report: Any) -> str:
    """What is wrong with loaded weights, in words; "" where all of a BERT's weights were there."""

    def of_bert(names: Iterable[str]) -> list[str]:
        return sorted(name for name in names if not is_boolean(name) and not name.startswith("pooler."))

    missing = of_bert(report["missing_keys"])
    other = of_bert(name for name, *_ in report["mismatched_keys"])
    layers = of_bert(name for name in report["unexpected_keys"] if "encoder.layer." in name)
    problems = [("missing", missing), ("of another size", other), ("in layers that the config does not name", layers)]
    return ", ".join(f"{len(names)} {what} (first {names[0]})" for what, names in problems if names)


@contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    """What is wrong with a model's files, as one line for the user."""
    try:
        yield
    except Exception as error:  # transformers, safetensors and tokenizers each raise their own kinds
        raise TrainingError(f"--encoder {path}: cannot be loaded: {first_line(error)}") from error
