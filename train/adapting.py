"""Learn adapters for an encoder that stays as it is: what both readers' training has in common."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from boolbert.core.errors import TrainingError
from boolbert.core.files import whole_file
from boolbert.reading_boolbert import LowRank, ReadingAdapters
from boolbert.retrieval.recorded import RecordedStep
from boolbert.train.optimizer import (
    BEFORE_RECORDED,
    build_optimizer,
    learning_rate_share,
    place_learning_rates,
    set_learning_rate,
)

WARMUP = 0.1  # share of the steps
LENGTHS = 32  # most lengths of texts for which layers are compiled
Batch = dict[str, Tensor]


class Adapting:
    """A BERT, whose weights should be `frozen`, and its adapters. dropout: of the embeddings, while it learns. compile:
    the layers, for the steps."""

    def __init__(
        self, bert: Any, rank: int, outputs: int, *, seed: int = 0, dropout: float = 0.1, compile: bool = False
    ):
        torch.manual_seed(seed)
        self.bert, self.device = bert, str(bert.device)
        self.adapters = fresh_adapters(self.bert.config, rank, outputs).to(self.device)
        self.dropout, self.is_learning = dropout, False
        self._compiled: Any = torch.compile(self.adapters, dynamic=False) if compile else self.adapters

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The head's numbers for each token (B, L, outputs)."""
        embeddings = F.dropout(self.bert.embeddings(ids), self.dropout, self.is_learning)
        with in_half(self.device):
            layers = self._compiled if self.is_learning else self.adapters
            found: Tensor = layers(self.bert.encoder.layer, embeddings, mask)
        return found.float()

    def scores(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """The same for texts, which are padded to the longest."""
        return self(*(one.to(self.device) for one in padded(texts, max(map(len, texts)))))

    def learn(
        self,
        batches: Iterable[Batch],
        count: int,
        learning_rate: float,
        loss: Callable[[Tensor, Batch], Tensor],
        on_step: Callable[[int], object] = lambda _: None,
    ) -> None:
        """A step for each of `count` batches, which hold "ids" and "mask". loss: of a batch's scores. on_step: called
        with 1 after each."""

        def loss_of(batch: Batch) -> Tensor:
            return loss(self(batch["ids"], batch["mask"]), batch)

        self.is_learning = True
        try:
            with torch._dynamo.config.patch(recompile_limit=LENGTHS):
                learn(self.adapters, loss_of, batches, count, learning_rate, on_step)
        finally:
            self.is_learning = False


def learn(
    model: nn.Module,
    loss: Callable[[Batch], Tensor],
    batches: Iterable[Batch],
    count: int,
    learning_rate: float,
    on_step: Callable[[int], object] = lambda _: None,
) -> None:
    """Teach a model by the loss of each batch; the rate rises, then falls to 0. On a GPU each shape of batch is
    recorded. Raises `TrainingError` where the last loss is no number."""
    device = next(model.parameters()).device
    optimizer = build_optimizer(model, learning_rate=learning_rate)
    place_learning_rates(optimizer, device if device.type == "cuda" else None)

    def compute(batch: Batch) -> Batch:
        optimizer.zero_grad()
        found = loss(batch)
        found.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return {"loss": found.detach()}

    step = RecordedStep(compute, device, forget=optimizer.zero_grad, on=device.type == "cuda")
    found: Batch = {}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=BEFORE_RECORDED)
            for number, batch in enumerate(batches):
                set_learning_rate(optimizer, learning_rate_share(number, count, WARMUP))
                found = step(batch)
                on_step(1)
    finally:
        step.close()
    if found and not found["loss"].isfinite():
        raise TrainingError("the loss is no number any more; a lower --learning_rate may help")


def in_half(device: str) -> Any:
    """bfloat16 on a GPU."""
    return torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=device.startswith("cuda"))


def padded(texts: Sequence[Sequence[int]], length: int) -> tuple[Tensor, Tensor]:
    """Token ids (B, length) and which of them are not padding."""
    ids = torch.tensor([[*text, *[0] * (length - len(text))] for text in texts])
    return ids, torch.arange(length) < torch.tensor([[len(text)] for text in texts])


def load_bert(folder: str, device: str | None = None) -> Any:
    """The BERT of a folder, to be read with and not to be trained."""
    from transformers import BertModel

    from boolbert.retrieval.models import no_warnings

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with no_warnings():
        bert: Any = BertModel.from_pretrained(folder, add_pooling_layer=False)
    return bert.eval().to(device).requires_grad_(False)


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """A model that neither learns nor drops anything out in this block."""
    learning, was_training = [own for own in model.parameters() if own.requires_grad], model.training
    model.eval().requires_grad_(False)
    try:
        yield
    finally:
        model.train(was_training)
        for parameter in learning:
            parameter.requires_grad_(True)


def fresh_adapters(config: Any, rank: int, outputs: int) -> ReadingAdapters:
    """Adapters that change nothing yet."""
    adapters = ReadingAdapters(config, rank, outputs)
    for module in adapters.modules():
        if isinstance(module, LowRank):
            nn.init.normal_(module.down, std=module.down.shape[1] ** -0.5)
            nn.init.zeros_(module.up)
    nn.init.normal_(adapters.head.weight, std=config.initializer_range)
    nn.init.zeros_(adapters.head.bias)
    return adapters


def save_adapters(adapters: ReadingAdapters, file: Path, **about: str) -> None:
    """Write adapters in half precision, whole or not at all."""
    from safetensors.torch import save_file

    tensors = {name: value.detach().half().cpu().contiguous() for name, value in adapters.state_dict().items()}
    with whole_file(file) as aside:
        save_file(tensors, aside, metadata=about)
