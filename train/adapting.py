"""Learn adapters for an encoder that stays as it is: what both readers' training has in common."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from boolbert.core.files import whole_file
from boolbert.modeling_boolbert import LowRank, ReadingAdapters

WARMUP = 0.1  # share of the steps
Rows = TypeVar("Rows")


class Adapting:
    """A BERT, whose weights should be `frozen`, and its adapters. dropout: of the embeddings, while it learns."""

    def __init__(self, bert: Any, rank: int, outputs: int, *, seed: int = 0, dropout: float = 0.1):
        torch.manual_seed(seed)
        self.bert, self.device = bert, str(bert.device)
        self.adapters = fresh_adapters(self.bert.config, rank, outputs).to(self.device)
        self.dropout, self.is_learning = dropout, False

    def scores(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """The head's numbers for each token (B, L, outputs) of texts, which are padded to the longest."""
        length = max(map(len, texts))
        ids = torch.tensor([[*text, *[0] * (length - len(text))] for text in texts], device=self.device)
        mask = torch.arange(length, device=self.device) < torch.tensor([[len(t)] for t in texts], device=self.device)
        embeddings = F.dropout(self.bert.embeddings(ids), self.dropout, self.is_learning)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device.startswith("cuda")):
            found: Tensor = self.adapters(self.bert.encoder.layer, embeddings, mask)
        return found.float()

    def steps(self, batches: Iterable[Rows], count: int, learning_rate: float) -> Iterator[Rows]:
        """The batches, one step for each; the rate rises, then falls to 0."""
        self._optimizer = torch.optim.AdamW(self.adapters.parameters(), lr=learning_rate, weight_decay=0.01)
        rate = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: min(1.0, (step + 1) / (WARMUP * count)) * max(0.0, 1 - step / count)
        )
        self.is_learning = True
        for rows in batches:
            yield rows
            rate.step()
        self.is_learning = False

    def learn(self, loss: Tensor) -> None:
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.adapters.parameters(), 1.0)
        self._optimizer.step()


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
