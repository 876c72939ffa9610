"""Run by `check.py` in a process of its own: load a published folder without this package.

    python load_published.py FOLDER TEXTS.json OUTPUT.npz

Only torch, transformers and sentence-transformers are imported, from their installed copies, offline.
"""

import json
import sys

import numpy as np


class NotInstalled:
    """`import boolbert` fails, as on a machine that has not installed it."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "boolbert":
            raise ModuleNotFoundError(f"No module named {name!r}")


def vectors_of(model, query_encoder, tokenizer, inputs):
    """The vectors of the inputs by each way to call a model: {way: array}."""
    import torch

    queries, operators = inputs["queries"], inputs["operators"]
    batch = tokenizer(queries, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        found = query_encoder.eval()(**batch)
    states, mask = found.last_hidden_state, batch["attention_mask"].unsqueeze(-1)
    pooled = (states * mask).sum(1) / mask.sum(1)
    vectors = {
        "AutoModel": found.get("sentence_embedding", pooled).numpy(),
        "encode_query": model.encode_query(queries),
        "encode_document": model.encode_document(inputs["documents"]),
    }
    if operators:
        vectors["encode_query with operators"] = model.encode_query(queries, operators=operators)
    return vectors


def vectors_of_folder(folder, inputs):
    """The same of a folder."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    model = SentenceTransformer(folder, trust_remote_code=True, device="cpu")
    query_encoder = AutoModel.from_pretrained(folder, trust_remote_code=True)
    return vectors_of(model, query_encoder, AutoTokenizer.from_pretrained(folder), inputs)


def probabilities_of_folder(folder, pairs):
    """What a published reader says of pairs, by each way to call it: {way: array}."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
    batch = tokenizer([tuple(pair) for pair in pairs], padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        logits = model.eval()(**batch).logits
    cross_encoder = CrossEncoder(folder, trust_remote_code=True, device="cpu")
    return {"CrossEncoder": cross_encoder.predict(pairs), "AutoModel": logits.softmax(-1).numpy()}


def main(folder: str, texts: str, output: str) -> None:
    with open(texts, encoding="utf-8") as file:
        inputs = json.load(file)
    is_reader = "pairs" in inputs
    found = probabilities_of_folder(folder, inputs["pairs"]) if is_reader else vectors_of_folder(folder, inputs)
    np.savez(output, **found)


if __name__ == "__main__":
    sys.meta_path.insert(0, NotInstalled())
    main(*sys.argv[1:])
