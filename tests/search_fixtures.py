"""A tiny model, ten documents and an index of them, for the tests of search and the command line."""

import gzip
import json
import subprocess
import sys

from sentence_helpers import plain_bert, write_dual

from boolbert.sentence_boolbert import save_dual_encoder

WORDS = ["films", "films about war", "books", "books about war", "a", "b", "a and b", "films in c", "c or b", "war"]
TEXTS = [f"Doc {row} é. {words}" for row, words in enumerate(WORDS)]  # title and text, as they are encoded
QUERY = "films but not about war"


def write_documents(path):
    lines = "".join(json.dumps({"title": f"Doc {row} é", "text": text}) + "\n" for row, text in enumerate(WORDS))
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path.write_text(lines, encoding="utf-8")
    return path


# What is asked of two searchers that have to give the same answers, and how.
QUERIES = ["films but not about war", "books or films", "a", "films about war " * 30]
OPTIONS = [{}, {"operators": []}, {"operators": ["not"]}, {"not_weight": 0.0}, {"not_weight": 2.0}]
OPTIONS += [{"excluded": [0], "not_kind": kind} for kind in (None, "topic", "property")]


def write_run(folder, lively, tiny_config, tokenizer, script="quest", **settings):
    """A folder as a training script leaves it; returns the two encoders."""
    encoders = write_dual(folder, lively, tiny_config, tokenizer, **settings)
    (folder / "args.json").write_text(json.dumps({"script": script, "arguments": {"data": None}}))
    (folder / "metrics.json").write_text("{}")
    return encoders


def write_baseline(folder, lively, tiny_config, tokenizer, document_seed=1):
    """A plain BERT over the same documents' encoder, or over another one."""
    query, document = (plain_bert(lively, tiny_config, seed=seed) for seed in (5, document_seed))
    save_dual_encoder(folder, query, document, tokenizer, pooling="mean", similarity="cosine")
    return folder


def run_without_torch(*words, **options):
    """The output of a command in a process of its own, and whether it has imported torch."""
    code = "import sys; from boolbert.cli import main; main(sys.argv[1:]); print('torch' in sys.modules)"
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    output, imported = done.stdout.rstrip().rpartition("\n")[::2]
    return output, imported == "True"
