"""A Bool-BERT with a reader of its own: the encoder's layers, changed by adapters, say what each token is."""

import json

import pytest
import torch
from torch.testing import assert_close
from transformers import BertModel

from boolbert import BoolBertConfig, BoolBertModel
from boolbert.boolean import tags
from boolbert.boolean.tags import TAGS
from boolbert.configuration_boolbert import KINDS_OF_NOT, READING_VERSION, is_boolean
from boolbert.core.errors import RetrievalError
from boolbert.reading_boolbert import ASKS, HEAD_SIZE, KIND, LEAD, PIECE, READER_TAGS, best_tags, of_sentence
from boolbert.retrieval.models import load_encoder
from boolbert.train.labelled_sentences import freeze_reading

AND, OR, NOT = range(3)


@pytest.fixture
def batch():
    """Twelve sentences of 2 to 13 tokens."""
    lengths = torch.arange(2, 14)
    mask = (torch.arange(13) < lengths[:, None]).long()
    return {"input_ids": torch.randint(1, 64, mask.shape, generator=torch.Generator().manual_seed(1)) * mask} | {
        "attention_mask": mask
    }


@pytest.fixture
def model(lively, batch):
    """Its reader is sure of what each token is, and no kind is rare."""
    model = lively(reader_rank=4, gate="cue")
    with torch.no_grad():
        model.reader.head.weight *= 4
        scores = model.reader(model.encoder.layer, model.embeddings(batch["input_ids"]), batch["attention_mask"])
        model.reader.head.bias[:PIECE] -= scores[batch["attention_mask"].bool()].mean(0)[:PIECE]
        model.reader.head.weight[PIECE] = 0
        model.reader.head.bias[PIECE] = -1
    return model


def tags_of(model, batch):
    """The kind of each token, "O" for the first and last of a sentence and for padding: one sentence after another."""
    found = [["O"] * batch["input_ids"].shape[1] for _ in batch["input_ids"]]
    for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        embeddings = model.embeddings(batch["input_ids"][row : row + 1, :length])
        scores = model.reader(model.encoder.layer, embeddings, torch.ones(1, length))
        words = torch.tensor([[0 < place < length - 1 for place in range(length)]])
        tags = best_tags(scores[..., :KIND], words)[0].tolist()
        found[row][:length] = [READER_TAGS[tag][-1] for tag in tags]
    return found


def test_the_tags_are_those_of_the_training_data():
    assert READER_TAGS == TAGS
    of_labels = (tags.KIND, tags.ASKS, tags.KINDS_OF_NOT, tags.LEAD)
    assert of_labels == (KIND, ASKS, KINDS_OF_NOT, LEAD)


@torch.no_grad()
def test_scopes_cues_and_gates_are_the_tags(model, batch):
    reading = model.read(**batch)
    tags = tags_of(model, batch)
    assert {tag for row in tags for tag in row} >= set("waomnxyc")
    # Wanted, a bound, a denial that is wanted; the first alternative and others; excluded and a bound that is denied.
    inside = {
        kinds: torch.tensor([[tag in kinds for tag in row] for row in tags]) for kinds in ("wmn", "ao", "xy", "c")
    }
    assert (reading.scope_logits > 0).equal(torch.stack([inside[kinds] for kinds in ("wmn", "ao", "xy")], 1))
    assert 0 < inside["xy"].any(1).sum() < len(inside["xy"]) - 1  # some sentences exclude something, and some do not
    for operator, kinds in ((OR, "ao"), (NOT, "xy")):
        assert reading.operators[:, operator].bool().equal(inside[kinds].any(1))
        assert reading.scope[:, operator].bool().equal(inside[kinds])
    assert (reading.cue_logits[:, NOT] > 0).equal(inside["c"])
    others = model.cue_predictor(
        model.embeddings(batch["input_ids"]), model.operator_embeddings, batch["attention_mask"]
    )
    assert_close(reading.cue_logits[:, :NOT], others[:, :NOT])
    wanted = ["".join("w" if tag in "wmn" else " " for tag in row).split() for row in tags]
    assert reading.operators[:, AND].tolist() == [int(len(stretches) > 1) for stretches in wanted]
    assert len(set(reading.operators[:, AND].tolist())) == 2


@torch.no_grad()
def test_resized_and_saved_it_loads_and_reads_as_before(tmp_path, model, batch):
    expected = model(**batch)
    model.resize_token_embeddings(70)
    model.save_pretrained(tmp_path)
    again = BoolBertModel.from_pretrained(tmp_path).eval()
    found = again(**batch)
    assert found.scope.equal(expected.scope)
    assert_close(found.sentence_embedding, expected.sentence_embedding)
    assert again.read(torch.full((1, 5), 69)).scope_logits.isfinite().all()


def test_a_folder_whose_reader_is_older_says_what_to_run(tmp_path, model, tokenizer):
    model.save_pretrained(tmp_path)
    assert BoolBertConfig.from_pretrained(tmp_path).reading_version == READING_VERSION
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    del config["reading_version"]
    file.write_text(json.dumps(config))
    with pytest.raises(
        ValueError, match=r"its reader is of version 1, and .* make the model again with `boolbert upgrade`"
    ):
        BoolBertModel.from_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(RetrievalError, match=rf"{tmp_path.name}/config.json: .*its reader is of version 1"):
        load_encoder(str(tmp_path), quiet=True)
    file.write_text(json.dumps({**config, "reader_rank": 0}))
    assert BoolBertConfig.from_pretrained(tmp_path).reader_rank == 0  # of a model without a reader it says nothing


@torch.no_grad()
def test_what_the_caller_or_a_learned_gate_says_goes_before(model, lively, batch):
    said = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 0, 0]] * 4)
    reading = model.read(**batch, operators=said)
    assert reading.operators.equal(said)
    assert reading.scope_logits.equal(model.read(**batch).scope_logits)
    scope = torch.zeros(12, 3, 13, dtype=torch.long)
    scope[7, NOT, 2] = 1
    reading = model.read(**batch, scope=scope)
    assert reading.scope.equal(scope)
    assert reading.operators.equal(scope.amax(-1))
    learned = lively(reader_rank=4, gate="learned").read(**batch)
    assert learned.operators.bool().equal(learned.gate_logits > 0)


def test_no_reader_runs_where_cues_and_scopes_are_given(model, batch, monkeypatch):
    given = {name: torch.zeros(12, 3, 13) for name in ("cues", "scope")}
    monkeypatch.setattr(model.reader, "forward", lambda *_: 1 / 0)
    assert not model(**batch, **given).operators.any()
    with pytest.raises(ZeroDivisionError):
        model(**batch, scope=given["scope"])


@torch.no_grad()
def test_where_a_property_is_negated_the_vector_is_the_plain_one(model, batch):
    """The kind is the mean over the words of what the head says; of a topic and a set something is taken away."""
    reading, plain = model.read(**batch), model(**batch, boolean=False)
    scores = model.reader(model.encoder.layer, model.embeddings(batch["input_ids"]), batch["attention_mask"])
    for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        expected = scores[row, 1 : length - 1, KIND:ASKS].mean(0) if length > 2 else torch.zeros(3)
        expected[KINDS_OF_NOT.index("property")] -= LEAD
        assert reading.kind[row] == expected.argmax()
    excludes = reading.scope[:, NOT].any(1)
    for kind in range(3):
        model.reader.head.bias[KIND:ASKS] = torch.eye(3)[kind] * 1000
        found = model(**batch)
        assert (found.kind[batch["attention_mask"].sum(1) > 2] == kind).all()
        assert found.scope.equal(reading.scope)
        differs = ~torch.isclose(found.sentence_embedding, plain.sentence_embedding, atol=1e-5).all(1)
        counts = excludes & (found.kind != KINDS_OF_NOT.index("property"))
        assert found.excluded_embedding.any(1).equal(counts)
        assert (differs | ~counts).all()


def test_all_pieces_of_a_word_are_what_the_first_is():
    """By loops, over random scores."""
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(200, 9, KIND, generator=generator) * 3
    words = torch.ones(200, 9, dtype=torch.bool)
    words[:, [0, -1]] = False
    found = best_tags(scores, words)
    apart = scores.clone()
    apart[..., PIECE] = -1
    expected = best_tags(apart, words)
    for row in range(200):
        for place in range(1, 8):
            if scores[row, place, PIECE] > 0 and place > 1:
                tag = int(found[row, place - 1])
                assert found[row, place] == (tag + 1 if tag % 2 else tag)
            elif scores[row, place, PIECE] <= 0:
                assert found[row, place] == expected[row, place]
    assert not found.equal(expected)
    assert of_sentence(torch.zeros(1, 3, HEAD_SIZE), torch.zeros(1, 3, dtype=torch.bool)).isfinite().all()


@torch.no_grad()
def test_padding_changes_nothing(model, batch):
    for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        alone = model(batch["input_ids"][row : row + 1, :length])
        together = model(**batch)
        assert_close(together.scope_logits[row, :, :length], alone.scope_logits[0], atol=1e-5, rtol=1e-4)
        assert_close(together.sentence_embedding[row], alone.sentence_embedding[0], atol=1e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_fresh_reader_finds_nothing_and_the_model_is_the_bert_that_it_was(tmp_path, tiny_config, batch, pooling):
    BertModel(tiny_config).eval().save_pretrained(tmp_path)
    settings = {"reader_rank": 4, "gate": "cue", "pooling": pooling}
    model = BoolBertModel.from_pretrained(tmp_path, **settings).eval()
    assert not model.read(**batch).operators.any()
    plain = BertModel.from_pretrained(tmp_path).eval()(**batch)
    out = model(**batch)
    assert out.last_hidden_state.equal(plain.last_hidden_state)
    assert not out.excluded_embedding.any()


def test_training_leaves_the_reader_alone(model, batch):
    model.train()(**batch).last_hidden_state.square().mean().backward()
    of_reader = {name: own for name, own in model.named_parameters() if name.startswith("reader.")}
    assert len(of_reader) > 2
    assert all(own.grad is None for own in of_reader.values())
    assert not model.read(**batch).scope_logits.requires_grad  # so that no layer learns by way of it
    assert all(map(is_boolean, of_reader))
    assert of_reader.keys() <= model.reading_parameters().keys()
    freeze_reading(model)
    assert not any(own.requires_grad for own in of_reader.values())


def test_it_takes_the_place_of_the_scope_reader(tiny_config):
    settings = tiny_config.to_dict()
    model = BoolBertModel(BoolBertConfig(**{**settings, "reader_rank": 4, "scope_reader_size": 0}))
    assert model.scope_reader is None
    assert model.config.reads_scopes
    with pytest.raises(ValueError, match="exclusion and branches need scopes to be read: set reader_rank"):
        BoolBertConfig(**{**settings, "scope_reader_size": 0})
    with pytest.raises(ValueError, match="reader_rank must be a whole number >= 0, got -1"):
        BoolBertConfig(**{**settings, "reader_rank": -1})


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_reads_alike(lively, batch, dtype):
    model = lively(reader_rank=4, gate="cue", std=0.1)
    expected = model.read(**batch).scope_logits
    found = model.to(dtype).read(**batch).scope_logits
    assert found.isfinite().all()
    assert (found.sign() == expected.sign()).float().mean() > 0.97
