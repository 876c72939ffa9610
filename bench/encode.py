"""Speed and memory of encoding a corpus into shards, beside `SentenceTransformer.encode` on the same model and texts.

python bench/encode.py                                   # 200 documents of mixed lengths, on whatever there is
python bench/encode.py --documents 20000 --precision bfloat16 --batch_size 256      # on a GPU
python bench/encode.py --memory 325505                   # peak memory at QUEST's size, with a one-layer model

Both encode the same texts in turn, several times in one run; the ratio is of the medians (over 1: shards are faster).
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from boolbert.data import Corpus, Document
from boolbert.retrieval.encode import default_batch_size, encode_corpus
from boolbert.retrieval.models import load_encoder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder or Hub id; all-MiniLM-L6-v2")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batch_size", type=int)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--device")
    parser.add_argument("--memory", type=int, metavar="DOCUMENTS", help="measure memory at this many documents instead")
    options = parser.parse_args()
    if options.memory:
        measure_memory(options.memory)
    else:
        measure_speed(options)


def made_up(documents: int, words: tuple[int, int] = (10, 250)) -> Corpus:
    """Documents of very different lengths, as encyclopedias have them."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 8))) for _ in range(5000)]
    sizes = (rng.randint(*words) for _ in range(documents))
    return Corpus(Document(f"d{row}", " ".join(rng.choices(vocabulary, k=size))) for row, size in enumerate(sizes))


def measure_speed(options: argparse.Namespace) -> None:
    model = load_encoder(options.model, device=options.device, precision=options.precision)
    corpus = made_up(options.documents)
    texts = [document.text for document in corpus]
    batch_size = options.batch_size or default_batch_size(model)
    times: dict[str, list[float]] = {"SentenceTransformer.encode": [], "encode_corpus": []}
    model.encode_document(texts[: 2 * batch_size], batch_size=batch_size)  # warm up
    for _ in range(options.repeats):
        start = time.perf_counter()
        wanted = model.encode_document(texts, batch_size=batch_size)
        times["SentenceTransformer.encode"].append(time.perf_counter() - start)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            shards = encode_corpus(model, corpus, Path(folder) / "v", batch_size=batch_size, progress=False)
            times["encode_corpus"].append(time.perf_counter() - start)
            difference = float(np.abs(shards[0 : len(shards)] - wanted.astype(np.float32)).max())
    device = torch.cuda.get_device_name() if model.device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{device}, {options.precision}, batch size {batch_size}, {options.documents:,} documents")
    for name, seconds in times.items():
        print(f"  {name:<28} {options.documents / np.median(seconds):>10,.0f} documents/s")
    ratio = np.median(times["SentenceTransformer.encode"]) / np.median(times["encode_corpus"])
    print(f"  ratio {ratio:.2f}, largest difference of a value {difference:.1e}")


def measure_memory(documents: int) -> None:
    """Everything but the model is of real size; a one-layer model keeps the time down."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    corpus = made_up(documents, words=(300, 500))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"etaoinshrdlu", *(f"##{c}" for c in "etaoinshrdlu")]
    with tempfile.TemporaryDirectory() as folder:
        config = BertConfig(
            vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=1, num_attention_heads=1, intermediate_size=32
        )
        BertModel(config).save_pretrained(folder)
        tokens = {token: row for row, token in enumerate(vocabulary)}
        BertTokenizer(vocab=tokens, model_max_length=32).save_pretrained(folder)
        module = Transformer(folder)
        model = SentenceTransformer(modules=[module, Pooling(32)], similarity_fn_name="dot")
        before = peak_memory()
        shards = encode_corpus(model, corpus, Path(folder) / "v", storage="float16", batch_size=256)
        grown = peak_memory() - before
    print(f"{len(shards):,} documents, {corpus.text_bytes / 1e6:,.0f} MB of text in memory")
    print(f"peak memory grew by {grown / 1e6:,.0f} MB while encoding ({before / 1e6:,.0f} MB before)")


def peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
