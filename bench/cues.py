"""Why the cue predictor is not linear and sees its neighbours: token-level F1 of its variants on unseen words.

    python bench/cues.py [--encoder PATH_OR_HUB_ID] [--sentences 700] [--epochs 1]

Trains only the cue predictor, the operator embeddings and the embedding layer, on the project's own sentences.
"""

from dataclasses import dataclass, field

import torch
from torch import nn
from transformers import AutoTokenizer, HfArgumentParser
from transformers.utils import logging

from boolbert import OPERATORS, BoolBertModel
from boolbert.boolean import cue_labels
from boolbert.data.sentences import boolean_sentences
from boolbert.retrieval.encoders import resolve_encoder

VARIANTS = {
    "linear, no context (the paper)": {"cue_activation": "linear", "cue_kernel": 1},
    "linear, 5 tokens": {"cue_activation": "linear", "cue_kernel": 5},
    "GELU, no context": {"cue_kernel": 1},
    "GELU, 3 tokens": {"cue_kernel": 3},
    "GELU, 5 tokens (default)": {"cue_kernel": 5},
    "GELU, 7 tokens": {"cue_kernel": 7},
}


@dataclass
class Arguments:
    encoder: str | None = field(default=None, metadata={"help": "the BERT whose embeddings are used"})
    sentences: int = field(default=700, metadata={"help": "triplets of sentences for each operator"})
    epochs: int = field(default=1, metadata={"help": "passes over them"})
    learning_rate: float = field(default=1e-3, metadata={"help": "of the cue predictor; embeddings learn at 1e-5"})
    device: str = field(default="cuda" if torch.cuda.is_available() else "cpu", metadata={"help": "cpu or cuda"})


def labelled(tokenizer, split: str, count: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, mask and cue labels (N, 3, L) of a split's sentences; the splits share no filler words."""
    texts = [
        text
        for operator in OPERATORS
        for triplet in boolean_sentences(operator, count, seed=0, split=split)
        for text in (triplet["G"], *triplet["P"], *triplet["N"])
    ]
    encoding = tokenizer(texts, padding=True, truncation=True, max_length=64, return_offsets_mapping=True)
    labels = [cue_labels(text, offsets) for text, offsets in zip(texts, encoding["offset_mapping"], strict=True)]
    tensors = (encoding["input_ids"], encoding["attention_mask"], labels)
    ids, mask, cues = (torch.tensor(values, device=device) for values in tensors)
    return ids, mask, cues.float()


def train(model: BoolBertModel, data, args: Arguments) -> None:
    ids, mask, labels = data
    cue_parameters = [*model.cue_predictor.parameters(), model.operator_embeddings]
    optimizer = torch.optim.AdamW(
        [
            {"params": cue_parameters, "lr": args.learning_rate},
            {"params": model.embeddings.parameters(), "lr": 1e-5},
        ]
    )
    model.train()
    for _ in range(args.epochs):
        for rows in torch.randperm(len(ids), device=ids.device).split(32):
            logits = cue_logits(model, ids[rows], mask[rows])
            losses = nn.functional.binary_cross_entropy_with_logits(logits, labels[rows], reduction="none")
            loss = (losses * mask[rows, None]).sum() / (3 * mask[rows].sum())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def cue_logits(model: BoolBertModel, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return model.cue_predictor(model.embeddings(ids), model.operator_embeddings, mask.float())


@torch.no_grad()
def cue_f1(model: BoolBertModel, data) -> list[float]:
    ids, mask, labels = data
    predicted = (cue_logits(model.eval(), ids, mask) > 0) & mask.bool()[:, None]
    right = (predicted & labels.bool()).sum((0, 2))
    return (2 * right / (predicted.sum((0, 2)) + labels.sum((0, 2))).clamp_min(1)).tolist()


def main() -> None:
    (args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    encoder = resolve_encoder(args.encoder)
    tokenizer = AutoTokenizer.from_pretrained(encoder.path)
    train_data = labelled(tokenizer, "train", args.sentences, args.device)
    dev_data = labelled(tokenizer, "dev", max(1, args.sentences // 7), args.device)
    print(f"{encoder.note}. {len(train_data[0]):,} training and {len(dev_data[0]):,} dev sentences\n")
    print(f"{'cue predictor':<34}" + "".join(f"{operator:>8}" for operator in OPERATORS))
    for name, changes in VARIANTS.items():
        torch.manual_seed(0)
        model = BoolBertModel.from_pretrained(encoder.path, **changes).to(args.device)
        train(model, train_data, args)
        print(f"{name:<34}" + "".join(f"{value:>8.3f}" for value in cue_f1(model, dev_data)), flush=True)


if __name__ == "__main__":
    main()
