"""Readers: an encoder with adapters, as torch learns them and as ONNX Runtime computes them."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.numpy import save_file as save_ranges
from transformers import BertConfig, BertModel

from boolbert.retrieval import adapters as module
from boolbert.retrieval.adapters import (
    DOCUMENT_READER,
    Reader,
    adapted,
    adapters_mark,
    encoder_mark,
    open_reader,
    ranges_of,
    weights_of,
)
from boolbert.retrieval.gpu_reader import GpuReader
from boolbert.retrieval.token_program import ranged_products
from boolbert.train import reader_ranges
from boolbert.train.adapting import Adapting, load_bert, save_adapters

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
OUTPUTS = 5
TEXTS = ([2, 9, 17, 31, 3], [2, 5, 3], [2, *range(20, 60), 3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random BERT with its tokenizer."""
    from transformers import BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    config = BertConfig(
        vocab_size=1300,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    bert = BertModel(config, add_pooling_layer=False)
    for name, parameter in bert.named_parameters():
        if "LayerNorm" not in name:
            torch.nn.init.normal_(parameter, std=0.08)
    bert.save_pretrained(folder)
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{number}" for number in range(1295))]
    BertTokenizer(vocab={token: number for number, token in enumerate(vocab)}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def learned(folder):
    """Adapters that change a lot."""
    adapting = Adapting(load_bert(str(folder), "cpu"), rank=4, outputs=OUTPUTS)
    torch.manual_seed(1)
    for parameter in adapting.adapters.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return adapting


@pytest.fixture(scope="module")
def file(folder, learned, tmp_path_factory):
    path = tmp_path_factory.mktemp("adapters") / "reader.safetensors"
    save_adapters(learned.adapters, path, encoder=encoder_mark(folder))
    return path


def scores_of(adapting, ids):
    with torch.no_grad():
        return adapting.scores([ids])[0].numpy()


def test_adapters_are_added_to_the_weights(folder, learned, file):
    """A plain BERT with the changed weights computes what the encoder computes with its adapters beside it."""
    own = {name: value.astype(np.float32) for name, value in load_file(file).items()}
    weights = load_file(folder / "model.safetensors")
    bert = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    changed = adapted(weights, own)
    bert.load_state_dict({name: torch.tensor(value) for name, value in changed.items()}, strict=False)
    for ids in TEXTS:
        with torch.no_grad():
            states = bert(torch.tensor([ids])).last_hidden_state[0].numpy()
        found = states @ own["head.weight"].T + own["head.bias"]
        np.testing.assert_allclose(found, scores_of(learned, ids), atol=0.02)  # adapters are kept in half precision
    touched = [name for name in weights if not np.array_equal(weights[name], changed[name])]
    assert len(touched) == 2 * len(module.MATRICES)


def test_a_reader_gives_what_torch_gives(folder, learned, file):
    """In float32, and as far as int8 goes; and without its adapters the encoder gives something else."""
    exact, reader = Reader(folder, file, float32=True), Reader(folder, file)
    plain = Adapting(load_bert(str(folder), "cpu"), rank=4, outputs=OUTPUTS)
    plain.adapters.head = learned.adapters.head
    for ids, found in zip(TEXTS, reader.all_scores(TEXTS), strict=True):
        expected, other = scores_of(learned, ids), scores_of(plain, ids)
        assert found.shape == (len(ids), OUTPUTS)
        assert np.abs(found - expected).mean() < 0.13 * np.abs(other - expected).mean()
        np.testing.assert_allclose(exact.scores(ids), expected, atol=0.02)  # adapters are kept in half precision
        np.testing.assert_array_equal(found, reader.scores(ids))


@pytest.fixture(scope="module")
def ranges(folder, file):
    """How large the numbers become inside the reader."""
    weights, *_ = weights_of(folder, file)
    bert = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    bert.load_state_dict({name: torch.tensor(value) for name, value in weights.items()}, strict=False)
    rng = np.random.default_rng(0)
    texts = [*TEXTS, *([2, *rng.integers(5, 1300, 50).tolist(), 3] for _ in range(40))]
    return {name: value.numpy() for name, value in reader_ranges.ranges_of(bert, texts).items()}


def test_a_reader_with_ranges_is_as_near_to_torch_as_one_without(folder, learned, file, ranges):
    ranged, plain = Reader(folder, file, ranges), Reader(folder, file)
    ids = [2, *range(100, 155), 3]  # not what the ranges were measured on
    expected = scores_of(learned, ids)
    errors = [np.abs(reader.scores(ids) - expected).mean() for reader in (ranged, plain)]
    assert errors[0] < 1.5 * errors[1]
    narrow = Reader(folder, file, {name: value / 4 for name, value in ranges.items()})
    assert np.abs(narrow.scores(ids) - expected).mean() > 2 * errors[0]  # it is by these that numbers are rounded
    for text, found in zip(TEXTS, ranged.all_scores(TEXTS), strict=True):
        np.testing.assert_array_equal(found, ranged.scores(text))


def test_ranges_are_taken_for_the_adapters_that_they_were_measured_for(file, ranges, tmp_path):
    path = tmp_path / "ranges.safetensors"
    assert ranges_of(file, path) is None
    save_ranges({name: value.astype(np.float16) for name, value in ranges.items()}, path, {"adapters": "others"})
    assert ranges_of(file, path) is None
    own = {"adapters": adapters_mark(file)}
    save_ranges({name: value.astype(np.float16) for name, value in ranges.items()}, path, own)
    found = ranges_of(file, path)
    assert (
        found.keys() == ranges.keys() == {name for layer in "01" for name in ranged_products(f"encoder.layer.{layer}")}
    )


def test_the_ranges_that_come_with_the_package_are_those_of_its_reader():
    assert ranges_of(DOCUMENT_READER) is not None


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_a_gpu)])
def test_a_reader_on_a_gpu_gives_the_same(folder, learned, file, device):
    """Each text the same beside others as alone, to half precision."""
    reader = GpuReader(folder, file, device)
    expected = [scores_of(learned, ids) for ids in TEXTS]
    for ids, found, right in zip(TEXTS, reader.all_scores(TEXTS), expected, strict=True):
        assert found.shape == (len(ids), OUTPUTS)
        np.testing.assert_allclose(found, right, atol=0.02 * np.abs(right).max())
        (alone,) = reader.all_scores([ids])
        np.testing.assert_allclose(found, alone, atol=0.02 * np.abs(right).max())
    assert reader.all_scores([]) == []


def test_a_reader_is_opened_for_the_encoder_that_it_was_learned_for(folder, learned, tmp_path, monkeypatch):
    from boolbert.retrieval.encoders import Encoder

    def opened(mark, name="reader.safetensors", encoder=folder):
        path = tmp_path / mark / name
        path.parent.mkdir(exist_ok=True)
        save_adapters(learned.adapters, tmp_path / mark / "reader.safetensors", encoder=mark)
        monkeypatch.setattr(module, "default_folder", lambda: encoder)
        monkeypatch.setattr(module, "resolve_encoder", lambda: Encoder(str(folder), "mean", "cosine", "minilm", ""))
        open_reader.cache_clear()
        return open_reader(path)

    try:
        (scores,) = opened(encoder_mark(folder)).all_scores([[2, 5, 3]])
        assert scores.shape[0] == 3
        assert opened("another") is None
        (same,) = opened(encoder_mark(folder), encoder=None).all_scores([[2, 5, 3]])  # the Hub's client finds it
        np.testing.assert_array_equal(same, scores)
        assert opened(encoder_mark(folder), name="gone.safetensors") is None
    finally:
        open_reader.cache_clear()
