"""A small QUEST-format folder and a tiny dual encoder, for the tests of evaluation."""

import json

import torch
from transformers import BertConfig, BertModel

from boolbert import BoolBertModel
from boolbert.sentence_boolbert import save_dual_encoder

# The set that a template makes of its atomic sets.
OPERATION = {
    "_": lambda a: a,
    "_ or _": lambda a, b: a | b,
    "_ or _ or _": lambda a, b, c: a | b | c,
    "_ that are also _": lambda a, b: a & b,
    "_ that are also both _ and _": lambda a, b, c: a & b & c,
    "_ that are not _": lambda a, b: a - b,
    "_ that are also _ but not _": lambda a, b, c: (a & b) - c,
}
# Sets over ten documents, and queries that follow from them.
SETS = {"films": [0, 1, 2, 3, 4, 5], "war": [1, 3, 5, 7, 9], "books": [6, 7, 8, 9], "long": [0, 3, 6, 9]}
QUERIES = [
    ("_", ["films"], "films"),
    ("_ or _", ["films", "books"], "films or books"),
    ("_ that are also _", ["films", "war"], "films as well as war"),
    ("_ that are not _", ["films", "war"], "films but not war"),
    ("_ that are not _", ["books", "war"], "books without war"),
    ("_ that are also _ but not _", ["films", "war", "long"], "films that are war but not a"),
]


def answers(template, atoms):
    return OPERATION[template](*(set(SETS[name]) for name in atoms))


def write_quest(folder):
    folder.mkdir(parents=True, exist_ok=True)
    texts = [" ".join(name for name, rows in SETS.items() if row in rows) + " a b c" * (row % 4) for row in range(10)]
    lines = [json.dumps({"title": f"Doc {row}", "text": text}) for row, text in enumerate(texts)]
    (folder / "documents.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "atoms.json").write_text(json.dumps(SETS))
    rows = []
    for template, atoms, text in QUERIES:
        marked = template
        for name in atoms:
            marked = marked.replace("_", f"<mark>{name}</mark>", 1)
        gold = [f"Doc {row}" for row in sorted(answers(template, atoms))]
        metadata = {"template": template, "atoms": atoms, "domain": "films"}
        rows.append(json.dumps({"query": text, "docs": gold, "original_query": marked, "metadata": metadata}))
    (folder / "dev.jsonl").write_text("\n".join(rows) + "\n")
    return folder


def save_model(folder, tokenizer, tiny_config, *, boolean=True, seed=0):
    """A run folder as training writes it, with weights large enough to tell documents apart."""
    torch.manual_seed(seed)
    fields = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    plain = BertConfig(**{name: getattr(tiny_config, name) for name in fields}, max_position_embeddings=32)
    document = BertModel(plain)
    tiny_config.pooling = "mean"
    query = BoolBertModel(tiny_config) if boolean else BertModel(plain)
    with torch.no_grad():
        for model in (document, query):
            for name, weight in model.named_parameters():
                if weight.ndim == 2 and "embedding" not in name.lower():
                    weight.mul_(5)
        if boolean:  # about half of the tokens are in scope
            query.scope_reader.output.weight.normal_()
            query.scope_reader.output_bias.zero_()
    save_dual_encoder(
        folder, query, document, tokenizer, pooling="mean", similarity="cosine", query_length=16, document_length=32
    )
    return folder
