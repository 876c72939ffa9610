"""A reader on a GPU: the encoder and adapters of `Reader`, with torch, many texts in one pass."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from boolbert.retrieval.adapters import Array, open_tokenizer, weights_of

AT_ONCE = 256  # texts of a pass
STEP = 32  # texts are padded to a multiple of as many tokens


class GpuReader:
    """As `adapters.Reader`, in half precision unless told otherwise. The last bits of a text's numbers depend on the
    texts beside it."""

    at_once = AT_ONCE

    def __init__(self, folder: Path, adapters: Path, device: str, dtype: torch.dtype = torch.float16):
        from transformers import BertConfig, BertModel

        weights, head, bias = weights_of(folder, adapters)
        self._bert = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False)
        self._bert.load_state_dict({name: torch.from_numpy(weights[name]) for name in self._bert.state_dict()})
        self._bert.eval().requires_grad_(False).to(device, dtype)
        self._head, self._bias = (torch.from_numpy(own).to(device) for own in (head, bias))
        self.tokenizer = open_tokenizer(folder)

    def all_scores(self, texts: Sequence[Sequence[int]]) -> list[Array]:
        """The head's numbers for each token of each text, (L, outputs)."""
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        found: dict[int, Array] = {}
        for start in range(0, len(order), AT_ONCE):
            rows = order[start : start + AT_ONCE]
            found.update(zip(rows, self._scores([texts[row] for row in rows]), strict=True))
        return [found[row] for row in range(len(texts))]

    @torch.inference_mode()
    def _scores(self, texts: Sequence[Sequence[int]]) -> list[Array]:
        longest = -(-max(map(len, texts)) // STEP) * STEP
        ids, mask = np.zeros((2, len(texts), longest), np.int64)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        device = self._bert.device
        states = self._bert(
            torch.from_numpy(ids).to(device), attention_mask=torch.from_numpy(mask).to(device)
        ).last_hidden_state
        numbers = F.linear(states.float(), self._head, self._bias).cpu().numpy()
        return [numbers[row, : len(text)] for row, text in enumerate(texts)]
