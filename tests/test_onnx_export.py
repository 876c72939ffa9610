"""The query encoder as an ONNX file gives what torch gives, for any batch, length and operators."""

import numpy as np
import pytest
from sentence_helpers import OPERATORS, QUERIES, plain_bert, write_dual

from boolbert.core.errors import BoolBertError
from boolbert.retrieval.batches import encode_inputs
from boolbert.sentence_boolbert import load_dual_encoder, save_dual_encoder

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

from boolbert import onnx_export
from boolbert.onnx_export import INPUTS, encode_onnx, export_onnx, measure, quantize, show

EXPORTED = []


@pytest.fixture
def exported(made_once, lively, tiny_config, tokenizer):
    """A tiny model, its tokenizer and its ONNX file; exporting takes seconds, so it is done once."""

    def make(folder):
        settings = {"num_hidden_layers": 1, "boolean_layers": [0], "scope_reader_layers": 2, "penalty": 0.5}
        write_dual(folder / "dual", lively, tiny_config, tokenizer, **settings)
        export_onnx(load_dual_encoder(folder / "dual", device="cpu"), folder / "query.onnx")

    if not EXPORTED:
        folder = made_once("onnx", make)
        EXPORTED.extend([load_dual_encoder(folder / "dual", device="cpu"), tokenizer, folder / "query.onnx"])
    return EXPORTED


@pytest.mark.long
@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_as_in_torch(exported, batch_size):
    model, tokenizer, file = exported
    some = [None, *OPERATORS[1:]]
    for operators in (None, OPERATORS, some):
        expected = model.encode_query(QUERIES, operators=operators)
        found = encode_onnx(file, tokenizer, QUERIES, operators, batch_size=batch_size)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(model.encode_query(QUERIES) - expected).max() > 1e-3  # the operators are felt


@pytest.mark.long
def test_what_a_search_needs_is_as_in_torch(exported):
    import onnxruntime

    model, tokenizer, file = exported
    batch = tokenizer(QUERIES, padding=True, return_tensors="np")
    inputs = {"operators": np.full((len(QUERIES), 3), -1), **{name: batch[name] for name in INPUTS[:2]}}
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    found = session.run(["two_sided"], {name: np.int64(value) for name, value in inputs.items()})[0]
    np.testing.assert_allclose(found, encode_inputs(model, QUERIES, "query", 8), atol=1e-5)
    assert np.abs(found[:, -1]).max() > 0.1  # something is excluded


@pytest.mark.long
def test_int8_and_its_loss(exported, tmp_path, capsys):
    model, _, file = exported
    target = tmp_path / "query.int8.onnx"
    quantize(file, target)
    assert target.stat().st_size < file.stat().st_size
    exact, rough = measure(model, file), measure(model, target)
    assert exact["largest difference"] < 1e-5
    assert 1e-5 < rough["largest difference"] < 0.5
    assert rough["lowest cosine"] <= rough["mean cosine"] < exact["mean cosine"]
    show(target, rough)
    out = capsys.readouterr().out
    assert (
        f"R-precision: {rough['R-precision, torch']:.4f} with torch, {rough['R-precision, onnx']:.4f} with this" in out
    )


def test_a_plain_bert_has_no_operators(tmp_path, lively, tiny_config, tokenizer):
    bert = plain_bert(lively, tiny_config)
    save_dual_encoder(tmp_path, bert, bert, tokenizer, pooling="cls", similarity="dot")
    with pytest.raises(BoolBertError, match="is not a Bool-BERT"):
        onnx_export.main([str(tmp_path), "--output", str(tmp_path / "x.onnx")])
    with pytest.raises(FileNotFoundError, match="none: no such folder"):
        onnx_export.main([str(tmp_path / "none"), "--output", str(tmp_path / "x.onnx")])
