"""How far memory grows while a corpus of QUEST's size is encoded into shards.

python bench/encode_memory.py                       # 325,505 documents
python bench/encode_memory.py --documents 20000

Everything but the model is of real size; a one-layer model keeps the time down. How fast encoding is, `bench/all.py`
measures.
"""

import argparse
import random
import tempfile
from pathlib import Path

from read_documents import peak_memory
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

from boolbert.data import Corpus, Document
from boolbert.retrieval.encode import encode_corpus

LETTERS = "etaoinshrdlu"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=325_505)
    options = parser.parse_args()
    corpus = made_up(options.documents)
    with tempfile.TemporaryDirectory() as folder:
        model = one_layer(folder)
        before = peak_memory()
        shards = encode_corpus(model, corpus, Path(folder) / "v", storage="float16", batch_size=256)
        grown = peak_memory() - before
    print(f"{len(shards):,} documents, {corpus.text_bytes / 1e6:,.0f} MB of text in memory")
    print(f"peak memory grew by {grown / 1e6:,.0f} MB while encoding ({before / 1e6:,.0f} MB before)")


def made_up(documents: int) -> Corpus:
    """Documents of 300 to 500 made-up words."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices(LETTERS, k=rng.randint(2, 8))) for _ in range(5000)]
    sizes = (rng.randint(300, 500) for _ in range(documents))
    return Corpus(Document(f"d{row}", " ".join(rng.choices(vocabulary, k=size))) for row, size in enumerate(sizes))


def one_layer(folder: str) -> SentenceTransformer:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=1, num_attention_heads=1, intermediate_size=32
    )
    BertModel(config).save_pretrained(folder)
    tokens = {token: row for row, token in enumerate(vocabulary)}
    BertTokenizer(vocab=tokens, model_max_length=32).save_pretrained(folder)
    return SentenceTransformer(modules=[Transformer(folder), Pooling(32)], similarity_fn_name="dot")


if __name__ == "__main__":
    main()
