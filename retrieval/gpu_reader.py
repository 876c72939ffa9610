"""A reader on a GPU: the encoder and adapters of `Reader`, with torch, many texts in one pass."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from .adapters import Array, open_tokenizer, weights_of
from .models import no_warnings

STEP = 32  # texts are padded to a multiple of as many tokens


class GpuReader:
    """As `adapters.Reader`, in half precision."""

    def __init__(self, folder: Path, adapters: Path, device: str):
        from transformers import BertModel

        weights, head, bias = weights_of(folder, adapters)
        with no_warnings():
            self._bert = BertModel.from_pretrained(folder, add_pooling_layer=False)
        self._bert.load_state_dict({name: torch.from_numpy(weights[name]) for name in self._bert.state_dict()})
        self._bert.eval().requires_grad_(False).to(device, torch.float16)
        self._head, self._bias = (torch.from_numpy(own).to(device) for own in (head, bias))
        self.tokenizer = open_tokenizer(folder)

    @torch.inference_mode()
    def all_scores(self, texts: Sequence[Sequence[int]]) -> list[Array]:
        """The head's numbers for each token of each text, (L, outputs)."""
        if not texts:
            return []
        longest = -(-max(map(len, texts)) // STEP) * STEP
        ids = np.zeros((2, len(texts), longest), np.int64)
        for row, text in enumerate(texts):
            ids[0, row, : len(text)] = text
            ids[1, row, : len(text)] = 1
        tokens, mask = torch.from_numpy(ids).to(self._bert.device)
        states = self._bert(tokens, attention_mask=mask).last_hidden_state
        found = F.linear(states.float(), self._head, self._bias).cpu().numpy()
        return [found[row, : len(text)] for row, text in enumerate(texts)]
