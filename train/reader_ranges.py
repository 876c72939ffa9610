"""How large numbers become inside the document reader, so that search can round them without looking at each token.

    python train/reader_ranges.py          # after train/document_reader.py, on a CPU in a minute

What is written is, for the inputs of most products of each layer, the largest absolute value of each number over some
hundred texts of `data/trades`, without those of the authors that are left out. `token_program`
(retrieval/token_program.py) divides by them.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import TrainingError, run_script
from boolbert.core.files import whole_file
from boolbert.data.trades import trades
from boolbert.retrieval.adapters import (
    DOCUMENT_RANGES,
    DOCUMENT_READER,
    adapters_mark,
    encoder_of,
    open_tokenizer,
    weights_of,
)
from boolbert.retrieval.document_reader import chosen, condition_ids, passage, question
from boolbert.retrieval.token_program import ranged_products

NO_COSINES = np.empty(0, np.float32)


@dataclass
class Arguments:
    adapters: str = flag(str(DOCUMENT_READER), "what train/document_reader.py has written")
    output: str = flag(str(DOCUMENT_RANGES), "the file to write")
    dev: str = flag("first,t8,last", "authors whose trades are left out, by commas")
    texts: int = flag(400, "texts that are read")
    seed: int = flag(0, "of the texts and their conditions")


def read_texts(tokenizer: Any, args: Arguments) -> list[list[int]]:
    """Conditions and texts as the reader sees them."""
    left_out, draw = set(args.dev.replace(" ", "").split(",")), random.Random(args.seed)
    labels = [label for trade in trades() if trade.author not in left_out for label in trade.labels()]
    found = []
    for label in draw.sample(labels, min(args.texts, len(labels))):
        own = passage(draw.choice(label.phrases), label.text, [], NO_COSINES)
        found.append(question(tokenizer, condition_ids(tokenizer, own.condition), chosen(tokenizer, own))[0])
    return found


@torch.inference_mode()
def ranges_of(bert: Any, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """The largest absolute value of each input of the products that are rounded by it."""
    found: dict[str, Tensor] = {}

    def look(name: str) -> Any:
        def keep(_: Any, inputs: tuple[Tensor, ...]) -> None:
            highest = inputs[0].abs().flatten(0, 1).amax(0)
            found[name] = torch.maximum(found.get(name, highest), highest)

        return keep

    for number in range(bert.config.num_hidden_layers):
        for name in ranged_products(f"encoder.layer.{number}"):
            bert.get_submodule(name).register_forward_pre_hook(look(name))
    for ids in texts:
        bert(torch.tensor([list(ids)]))
    return found


def main(words: Sequence[str] | None = None) -> None:
    from transformers import BertConfig, BertModel

    args = parse_arguments(Arguments, __doc__, words)
    folder = encoder_of(Path(args.adapters))
    if folder is None:
        raise TrainingError(f"{args.adapters}: the encoder that it was learned for is not on this machine")
    weights, *_ = weights_of(folder, Path(args.adapters))
    bert = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False)
    bert.load_state_dict({name: torch.from_numpy(weights[name]) for name in bert.state_dict()})
    found = ranges_of(bert.eval(), read_texts(open_tokenizer(folder), args))
    with whole_file(Path(args.output)) as aside:
        mark = {"adapters": adapters_mark(Path(args.adapters))}
        save_file({name: value.half() for name, value in found.items()}, aside, mark)
    print(f"{args.output}: {len(found)} ranges, over {args.texts} texts")


if __name__ == "__main__":
    run_script(main)
