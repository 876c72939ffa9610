"""Build a Bool-BERT from a pretrained BERT, encode three queries, and show what it makes of them.

make demo
"""

import torch
from transformers import AutoTokenizer
from transformers.utils import logging

from boolbert import OPERATORS, BoolBertModel
from boolbert.boolean import find_cues, multi_hot, operators_of
from boolbert.encoders import resolve_encoder

QUERIES = [
    "films set in Vietnam but not about war",
    "novels by Agatha Christie or Dorothy Sayers",
    "birds of Colombia that are also birds of Ecuador",
]


def main() -> None:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    encoder = resolve_encoder()
    print(encoder.note)
    tokenizer = AutoTokenizer.from_pretrained(encoder.path)
    model = BoolBertModel.from_pretrained(encoder.path, pooling=encoder.pooling).eval()
    print(f"Bool-BERT with {model.num_parameters() / 1e6:.1f}M parameters, its BoolAttn parts untrained\n")

    batch = tokenizer(QUERIES, padding=True, return_tensors="pt")
    operators = torch.tensor([multi_hot(operators_of(query)) for query in QUERIES])
    with torch.no_grad():
        output = model(**batch, operators=operators, output_boolean=True)
        plain = model(**batch, operators=torch.zeros_like(operators))
    for row, query in enumerate(QUERIES):
        names = [name for name, on in zip(OPERATORS, output.operators[row].tolist(), strict=True) if on]
        cues = ", ".join(f"{cue.text!r}" for cue in find_cues(query))
        same = torch.cosine_similarity(output.last_hidden_state[row, 0], plain.last_hidden_state[row, 0], dim=0)
        print(f"{query}\n  operators: {', '.join(names) or 'none'}   cues: {cues}   cosine to plain BERT: {same:.4f}")


if __name__ == "__main__":
    main()
