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


def main(folder: str, texts: str, output: str) -> None:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    with open(texts, encoding="utf-8") as file:
        inputs = json.load(file)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    query_encoder = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    batch = tokenizer(inputs["queries"], padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        found = query_encoder(**batch)
    states, mask = found.last_hidden_state, batch["attention_mask"].unsqueeze(-1)
    pooled = (states * mask).sum(1) / mask.sum(1)
    model = SentenceTransformer(folder, trust_remote_code=True, device="cpu")
    vectors = {
        "AutoModel": found.get("sentence_embedding", pooled).numpy(),
        "encode_query": model.encode_query(inputs["queries"]),
        "encode_document": model.encode_document(inputs["documents"]),
    }
    if inputs["operators"]:
        vectors["encode_query with operators"] = model.encode_query(inputs["queries"], operators=inputs["operators"])
    np.savez(output, **vectors)


if __name__ == "__main__":
    sys.meta_path.insert(0, NotInstalled())
    main(*sys.argv[1:])
