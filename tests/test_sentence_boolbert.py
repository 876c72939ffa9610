"""The dual encoder in sentence-transformers gives what its two models give, however its inputs are batched."""

import json
import warnings

import numpy as np
import pytest
import torch
from sentence_helpers import DOCUMENTS, OPERATORS, QUERIES, embed, plain_bert, write_dual
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from boolbert import BoolBertModel
from boolbert.sentence_boolbert import (
    BoolBertSentenceTransformer,
    load_dual_encoder,
    operator_row,
    save_dual_encoder,
    with_operators,
)

ROWS = torch.tensor([operator_row(operators) for operators in OPERATORS])


@pytest.fixture
def folder(tmp_path, lively, tiny_config, tokenizer):
    write_dual(tmp_path / "dual", lively, tiny_config, tokenizer)
    return tmp_path / "dual"


@pytest.mark.parametrize(("pooling", "similarity"), [("cls", "dot"), ("mean", "cosine")])
def test_each_route_is_its_model(tmp_path, lively, tiny_config, tokenizer, pooling, similarity):
    query, document = write_dual(tmp_path, lively, tiny_config, tokenizer, pooling, similarity)
    model = load_dual_encoder(tmp_path)
    found = model.encode_query(QUERIES, batch_size=2)
    np.testing.assert_allclose(found, embed(query, tokenizer, QUERIES, pooling, similarity), atol=1e-5)
    found = model.encode_document(DOCUMENTS)
    np.testing.assert_allclose(found, embed(document, tokenizer, DOCUMENTS, pooling, similarity), atol=1e-5)
    assert model.similarity_fn_name == similarity


@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_operators_follow_their_queries(tmp_path, lively, tiny_config, tokenizer, batch_size):
    query, _ = write_dual(tmp_path, lively, tiny_config, tokenizer)
    expected = embed(query, tokenizer, QUERIES, "mean", "cosine", operators=ROWS)
    assert np.abs(expected - embed(query, tokenizer, QUERIES, "mean", "cosine")).max() > 1e-3
    model = load_dual_encoder(tmp_path)
    for operators in (OPERATORS, ROWS, ROWS.numpy(), ROWS.tolist()):
        found = model.encode_query(QUERIES, operators=operators, batch_size=batch_size)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    one = model.encode_query(QUERIES[3], operators=OPERATORS[3])
    assert one.shape == (16,)
    np.testing.assert_allclose(one, expected[3], atol=1e-5)


def test_operators_of_some_queries_only(folder):
    """Where a query's operators are not given the gate decides, in a batch with others too."""
    model = load_dual_encoder(folder)
    some = [operators if index % 2 else None for index, operators in enumerate(OPERATORS)]
    given, plain = model.encode_query(QUERIES, operators=OPERATORS), model.encode_query(QUERIES)
    expected = np.where(np.arange(len(QUERIES))[:, None] % 2, given, plain)
    np.testing.assert_allclose(model.encode_query(QUERIES, operators=some), expected, atol=1e-5)


def test_a_stranger_gets_the_same_without_the_package_classes(folder):
    """`SentenceTransformer(..., trust_remote_code=True)` runs the folder's own code and takes `operators` too."""
    stranger = SentenceTransformer(str(folder), trust_remote_code=True)
    assert type(stranger).__module__.startswith("transformers_modules.")
    friend = load_dual_encoder(folder)
    assert isinstance(friend[0].sub_modules["query"][0].model, BoolBertModel)
    for kwargs in ({}, {"operators": OPERATORS}):
        np.testing.assert_allclose(
            stranger.encode_query(QUERIES, **kwargs), friend.encode_query(QUERIES, **kwargs), atol=1e-6
        )


def test_the_other_door(folder, lively, tokenizer):
    """`AutoModel` and `AutoTokenizer` find the query encoder at the root."""
    model = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    found = embed(model, AutoTokenizer.from_pretrained(folder), QUERIES, "mean", "cosine", operators=ROWS)
    np.testing.assert_allclose(found, load_dual_encoder(folder).encode_query(QUERIES, operators=OPERATORS), atol=1e-5)


def test_lengths(tmp_path, tokenizer, pretrained_bert):
    """64 tokens of a query and 256 of a document count, by either door."""
    model = BoolBertSentenceTransformer.from_encoders(pretrained_bert, pretrained_bert)
    long = ["word " * 300]
    assert model.preprocess(long, task="query")["input_ids"].shape == (1, 64)
    assert model.preprocess(long, task="document")["input_ids"].shape == (1, 256)
    model.save(str(tmp_path))
    assert AutoTokenizer.from_pretrained(tmp_path).model_max_length == 64


@pytest.mark.parametrize("trust", [False, True])
def test_saved_again_by_either_class(tmp_path, folder, trust):
    """What a trainer or a user saves opens both doors again, and nothing is stored twice."""
    model = SentenceTransformer(str(folder), trust_remote_code=True) if trust else load_dual_encoder(folder)
    for again in (tmp_path / "again", tmp_path / "again"):  # over an older one as well
        model.save(str(again))
    files = {file.relative_to(folder) for file in folder.rglob("*.*")}
    assert {file.relative_to(again) for file in again.rglob("*.*")} == files | {
        (again / "README.md").relative_to(again)
    }
    assert len(list(again.rglob("*.safetensors"))) == 2
    np.testing.assert_array_equal(
        load_dual_encoder(again).encode_query(QUERIES, operators=OPERATORS),
        model.encode_query(QUERIES, operators=OPERATORS),
    )
    SentenceTransformer(str(again), trust_remote_code=True)
    AutoModel.from_pretrained(again, trust_remote_code=True)


def test_plain_bert_as_the_query_encoder(tmp_path, lively, tiny_config, tokenizer):
    """The baseline: no custom code in the folder, and none needed to load it."""
    query, document = plain_bert(lively, tiny_config, seed=5), plain_bert(lively, tiny_config, seed=6)
    save_dual_encoder(tmp_path, query, document, tokenizer, pooling="cls", similarity="dot")
    assert not list(tmp_path.glob("*.py"))
    model = SentenceTransformer(str(tmp_path))
    np.testing.assert_allclose(model.encode_query(QUERIES), embed(query, tokenizer, QUERIES, "cls", "dot"), atol=1e-5)
    with pytest.raises(ValueError, match="not a Bool-BERT"):
        load_dual_encoder(tmp_path).encode_query(QUERIES, operators=OPERATORS)


def test_one_model_for_both_sides_is_stored_once(tmp_path, lively, tiny_config, tokenizer):
    model = plain_bert(lively, tiny_config)
    save_dual_encoder(tmp_path, model, model, tokenizer, pooling="cls", similarity="dot", query_length=6)
    assert [file.name for file in tmp_path.rglob("*.safetensors")] == ["model.safetensors"]
    for path in (tmp_path, tmp_path / "again"):
        dual = load_dual_encoder(path)
        assert dual.preprocess([QUERIES[3]], task="query")["input_ids"].shape == (1, 6)
        assert dual.preprocess([QUERIES[3]], task="document")["input_ids"].shape == (1, 14)
        assert dual[0].sub_modules["query"][0] is dual[0].sub_modules["document"][0]
        dual.save(str(tmp_path / "again"))
    assert [file.name for file in (tmp_path / "again").rglob("*.safetensors")] == ["model.safetensors"]


def test_from_sentence_transformer(pretrained_bert, tmp_path):
    """all-MiniLM with a Boolean-aware query side: the same documents, and almost the same queries at first."""
    source = SentenceTransformer(pretrained_bert)
    model = BoolBertSentenceTransformer.from_sentence_transformer(pretrained_bert, gate="cue")
    texts = ["landlocked countries in Africa that are not monarchies", "islands in Europe or Asia"]
    np.testing.assert_allclose(model.encode_document(texts), source.encode(texts), atol=1e-6)
    operators = [["not"], ["or"]]
    found = model.encode_query(texts, operators=operators)
    assert (found * source.encode(texts)).sum(1).min() > 0.999
    np.testing.assert_allclose(model.encode_query(texts, operators=[[], []]), source.encode(texts), atol=1e-5)
    assert model[0].sub_modules["query"][0].model.config.gate == "cue"
    model.save(str(tmp_path))
    np.testing.assert_allclose(load_dual_encoder(tmp_path).encode_query(texts, operators=operators), found, atol=1e-6)


def test_encode_without_a_side_warns_once(folder):
    model = SentenceTransformer(str(folder), trust_remote_code=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.encode(QUERIES)
        model.encode(QUERIES)
    assert [str(one.message) for one in caught if "encode_query" in str(one.message)] == [str(caught[0].message)]
    np.testing.assert_array_equal(found, model.encode_document(QUERIES))


def test_encode_takes_the_side_of_its_prompt_or_task(folder):
    model = load_dual_encoder(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for encode, side in ((model.encode_query, "query"), (model.encode_document, "document")):
            np.testing.assert_array_equal(model.encode(QUERIES, prompt_name=side), encode(QUERIES))
            np.testing.assert_array_equal(model.encode(QUERIES, task=side), encode(QUERIES))


def test_requirements_are_written_and_checked(folder, tmp_path):
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    assert settings["requirements"] == {"sentence-transformers": ">=6.0", "transformers": ">=5.14", "torch": ">=2.9"}
    model = load_dual_encoder(folder)
    model.save(str(tmp_path / "again"))
    again = json.loads((tmp_path / "again/config_sentence_transformers.json").read_text())
    assert again["requirements"] == settings["requirements"]
    settings["requirements"]["transformers"] = ">=99"
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    with pytest.raises(ImportError, match="transformers>=99"):
        load_dual_encoder(folder)


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ([["and"]], "one entry a query, got 1 for 2 queries"),
        ([["and"], ["nor"]], r"query 1: operators must be among and, or, not, got 'nor'"),
        ([["and"], "not"], r"query 1: the operators of a query must be a list of names"),
        ([[1, 0, 2], None], r"query 0: the operators of a query must be .* 3 values of 0/1"),
        ([[1, 0], None], r"query 0: "),
    ],
)
def test_bad_operators(operators, message):
    with pytest.raises(ValueError, match=message):
        with_operators(["a", "b"], operators)


def test_bad_encoders(tmp_path, lively, tiny_config, tokenizer, pretrained_bert):
    query, document = lively(hidden_size=32), plain_bert(lively, tiny_config)
    settings = {"pooling": "cls", "similarity": "dot"}
    with pytest.raises(ValueError, match="same hidden_size, got 32 and 16"):
        save_dual_encoder(tmp_path, query, document, tokenizer, **settings)
    for name in settings:
        with pytest.raises(ValueError, match=f"{name} must be .*, got 'max'"):
            save_dual_encoder(tmp_path, document, document, tokenizer, **{**settings, name: "max"})
    with pytest.raises(ValueError, match="tokenizer must be given"):
        BoolBertSentenceTransformer.from_encoders(document, document)
    dual = BoolBertSentenceTransformer.from_encoders(document, document, tokenizer)
    with pytest.raises(ValueError, match="begins with a BERT, got Router"):
        BoolBertSentenceTransformer.from_sentence_transformer(dual)
    assert not list(tmp_path.iterdir())
