"""What the document reader and its larger teacher learn from, and that training and search add up the same sums."""

import json
import math
import random
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, BertTokenizer

from boolbert.core.errors import DataError
from boolbert.data.trades import AFFIRMED, DENIED, NOT_AFFIRMED, SILENT, Label
from boolbert.retrieval.document_reader import (
    FIRST_TOKENS,
    TOKENS,
    Passage,
    Piece,
    chosen,
    condition_ids,
    question,
    said,
    sentences_of,
)
from boolbert.retrieval.document_reader import summed as summed_in_search
from boolbert.train import document_labels, document_reader, document_teacher
from boolbert.train.document_labels import LabelledCondition, Labels, Passages, Soft, epoch, read_soft, write_soft
from boolbert.train.packed_rows import Packed, batches, loss_of, on_all_cores, packed, shares_of, summed

TEXT = "The Old Mill. A quiet hotel by the river. Dogs stay in the yard. There is no pool. Breakfast is from seven."
WORDS = sorted({word.strip(".,").lower() for word in f"{TEXT} a pool dogs no without not free any lift".split()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random BERT with its tokenizer."""
    folder = tmp_path_factory.mktemp("bert")
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]
    config = BertConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=256,
    )
    torch.manual_seed(0)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    BertTokenizer(vocab={token: number for number, token in enumerate(vocab)}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder):
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def nearest_first(*words):
    """The sentences of TEXT, those first that have these words, in the words' order."""
    spans = sentences_of(TEXT)
    first = [span for word in words for span in spans if word in TEXT[slice(*span)]]
    return [*first, *(span for span in spans if span not in first)]


def read_words(tokenizer, tokens, *words):
    pieces = chosen(tokenizer, Passage("a pool", TEXT, nearest_first(*words)), tokens)
    return [TEXT[slice(*piece.span)] for piece in pieces]


def test_the_title_and_the_nearest_sentences_that_fit_are_read_in_the_order_of_the_text(tokenizer):
    assert read_words(tokenizer, 200) == [TEXT[slice(*span)] for span in sentences_of(TEXT)]
    assert read_words(tokenizer, 10, "pool") == ["The Old Mill.", "There is no pool."]
    assert read_words(tokenizer, 16, "pool", "Dogs") == ["The Old Mill.", "Dogs stay in the yard.", "There is no pool."]
    pieces = chosen(tokenizer, Passage("a pool", TEXT, nearest_first("pool", "quiet")), 12)
    assert [len(piece.ids) for piece in pieces] == [4, 5]  # seven tokens of the quiet hotel do not fit any more


def test_a_long_first_sentence_is_read_only_where_it_is_near(tokenizer):
    text = f"{'river ' * (FIRST_TOKENS + 1)}. There is no pool. {'Dogs ' * TOKENS}."
    spans = sentences_of(text)
    assert len(spans) == 3
    found = chosen(tokenizer, Passage("a pool", text, [spans[1], spans[2], spans[0]]))
    assert found[0].span == spans[1]
    assert sum(len(piece.ids) for piece in found) <= TOKENS


def test_a_question_has_the_special_tokens_of_its_encoder_and_says_where_sentences_stand(tokenizer):
    pieces = chosen(tokenizer, Passage("a pool", TEXT, nearest_first("pool")), 10)
    ids, places = question(tokenizer, condition_ids(tokenizer, "a pool"), pieces)
    assert (
        tokenizer.decode(ids, skip_special_tokens=False) == "[CLS] a pool [SEP] the old mill. there is no pool. [SEP]"
    )
    assert [tokenizer.decode(ids[place]) for place in places] == ["the old mill.", "there is no pool."]


def test_training_and_search_add_up_the_same_sums(tokenizer):
    passages = [Passage("a pool", TEXT, nearest_first(word)) for word in ("pool", "quiet", "Dogs")]
    told = iter(passages)
    choosing = SimpleNamespace(of=lambda text, condition, near_to: next(told))
    rows = packed(choosing, tokenizer, [LabelledCondition(TEXT, "a pool", AFFIRMED)] * 3, 20)
    batch = rows.batch(torch.arange(3), 40)
    scores = torch.randn(3, 40, 3, generator=torch.Generator().manual_seed(0))
    shares = torch.softmax(summed(scores, batch["inside"]), -1).numpy()
    for number, one in enumerate(passages):
        pieces = chosen(tokenizer, one, 20)
        ids, places = question(tokenizer, condition_ids(tokenizer, one.condition), pieces)
        assert batch["ids"][number, batch["mask"][number]].tolist() == ids
        assert batch["ids"][number].tolist() == [*ids, *[0] * (40 - len(ids))]
        found = said(summed_in_search(scores[number].numpy(), places), pieces)
        assert found[:3] == pytest.approx(shares[number].tolist(), abs=1e-5)
        tokens = [token for place in places for token in range(place.start, place.stop)]  # written out
        each = [sum(math.exp(scores[number, token, side]) for token in tokens) for side in (0, 1)]
        each.append(math.exp(scores[number, 0, 2]))
        assert found[:3] == pytest.approx([own / sum(each) for own in each], abs=1e-5)


def test_the_sentence_that_decided_has_the_strongest_token_of_the_larger_side_and_nearer_ones_go_before():
    scores = np.full((9, 3), -3.0, np.float32)
    places = [slice(1, 3), slice(3, 6), slice(6, 9)]
    pieces = [Piece((0, 5), [7, 7], 1), Piece((6, 9), [7, 7, 7], 0), Piece((10, 20), [7, 7, 7], 2)]
    scores[1, 0], scores[2, 0], scores[7, 0] = 1.9, 1.9, 2.0  # two strong tokens, but one that is stronger
    assert said(summed_in_search(scores, places), pieces)[3:] == (0, 5)  # and nearer
    scores[7, 0] = 2.3
    assert said(summed_in_search(scores, places), pieces)[3:] == (10, 20)
    scores[4, 1] = 9.0
    found = said(summed_in_search(scores, places), pieces)
    assert found.denies > 0.9
    assert found[3:] == (6, 9)


def test_the_loss_is_the_cross_entropy_of_classes_shares_and_of_what_is_known_not_to_be_affirmed():
    found = torch.tensor([[2.0, 0.5, -1.0], [0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [0.0, -1.0, 1.0]])
    says = [AFFIRMED, (0.2, 0.5, 0.3), NOT_AFFIRMED, SILENT]
    slow = []
    for row, one in zip(found.tolist(), says, strict=True):
        total = sum(map(math.exp, row))
        shares = [math.exp(own) / total for own in row]
        if isinstance(one, tuple):
            slow.append(-sum(wanted * math.log(own) for wanted, own in zip(one, shares, strict=True)))
        else:
            slow.append(-math.log({AFFIRMED: shares[0], NOT_AFFIRMED: 1 - shares[0], SILENT: shares[2]}[one]))
    assert loss_of(found, *shares_of(says)).item() == pytest.approx(sum(slow) / 4, abs=1e-6)


def test_an_epoch_has_every_label_once_and_turns_some_round(folder):
    labels = [Label(TEXT, ("a pool",), DENIED)] * 200 + [Label(TEXT, ("dogs", "a dog"), SILENT)] * 100
    others = [Label("No lift.", ("a lift",), DENIED)]
    bert = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    passages = Passages(bert, tokenizer, [TEXT, "No lift."], ["a pool", "dogs", "a dog", "a lift"])
    found = epoch(Labels(labels, others, []), random.Random(0))
    assert len(found) == 301
    turned = [one for one in found if one.says == AFFIRMED]
    assert 5 < len(turned) < 40
    assert {one.condition for one in turned} <= {"no pool", "without a pool", "not a pool", "pool-free"}
    assert {one.condition for one in found if one.says == SILENT} == {"dogs", "a dog"}  # no other text is there
    rows = packed(passages, tokenizer, found, TOKENS)
    parts = list(batches(rows, 32, random.Random(0)))
    assert all(part["ids"].shape[1] % 16 == 0 for part in parts)
    read = [tuple(ids[mask].tolist()) for part in parts for ids, mask in zip(part["ids"], part["mask"], strict=True)]
    assert [len(part["ids"]) for part in parts] == [32] * 10  # 301 rows, and 19 of them again
    assert set(read) == set(texts_of(rows))
    counts = Counter(read) - Counter(texts_of(rows))
    assert counts.total() == 19


def texts_of(rows):
    return [tuple(rows.ids[start:end].tolist()) for start, end in pairwise(rows.starts.tolist())]


def test_rows_are_drawn_and_joined_as_they_were_packed(tokenizer):
    passages = [Passage("a pool", TEXT, nearest_first(word)) for word in ("pool", "quiet", "Dogs", "Breakfast")]
    told = iter(passages)
    choosing = SimpleNamespace(of=lambda text, condition, near_to: next(told))
    says = [AFFIRMED, (0.2, 0.5, 0.3), NOT_AFFIRMED, SILENT]
    rows = packed(choosing, tokenizer, [LabelledCondition(TEXT, "a pool", one) for one in says], 12)
    drawn = rows.drawn(torch.tensor([3, 0, 2]))
    assert texts_of(drawn) == [texts_of(rows)[number] for number in (3, 0, 2)]
    assert drawn.is_other.tolist() == [False, False, True]
    both = Packed.joined([drawn, rows])
    assert texts_of(both) == texts_of(drawn) + texts_of(rows)
    assert both.shares.tolist() == drawn.shares.tolist() + rows.shares.tolist()
    assert both.inside.tolist() == drawn.inside.tolist() + rows.inside.tolist()


def test_work_on_all_cores_comes_back_in_its_order():
    assert list(on_all_cores(lambda number: number * 2, range(0, 100, 3))) == [n * 2 for n in range(0, 100, 3)]


def test_what_a_teacher_found_is_read_again(tmp_path):
    rows = [
        Soft(TEXT, "a pool", (0.1, 0.8, 0.1)),
        Soft(TEXT, "dogs", (0.5, 0.25, 0.25)),
        Soft("x", "y", (0.0, 0.0, 1.0)),
    ]
    write_soft(tmp_path / "soft.jsonl.gz", rows)
    assert read_soft(tmp_path / "soft.jsonl.gz") == rows
    (tmp_path / "bad.jsonl").write_text(json.dumps({"text": "x", "conditions": {"y": [1, 2]}}) + "\n")
    with pytest.raises(DataError, match=r"bad\.jsonl:1: must be a text with conditions, and three shares of each"):
        read_soft(tmp_path / "bad.jsonl")


@pytest.mark.long
def test_a_teacher_writes_what_the_reader_learns_from(folder, tmp_path, monkeypatch, capsys):
    trades, statements = tmp_path / "trades", tmp_path / "statements"
    for name in (trades, statements):
        name.mkdir()
    for number, author in enumerate(("first", "other")):
        says = {"affirms": ["pool"], "denies": ["dogs"]}
        documents = [
            {
                "id": f"{n}",
                "title": f"Hotel {n}",
                "text": TEXT,
                "kind": "hotel",
                **(says if n % 2 else {"affirms": [], "denies": []}),
            }
            for n in range(4)
        ]
        attributes = {"pool": ["a pool"], "dogs": ["dogs"]}
        trade = {"author": author, "attributes": attributes, "kinds": {"hotel": ["hotels"]}, "documents": documents}
        (trades / f"{number}.json").write_text(json.dumps({**trade, "queries": []}))
    (statements / "one.txt").write_text("No lift. || a lift = n ; dogs = u\n")
    monkeypatch.setattr(document_labels, "country_labels", list)
    monkeypatch.setattr(document_teacher, "conditions_of", lambda labels, files: ["a pool", "dogs", "hotels", "a lift"])
    given = ["--trades", str(trades), "--statements", str(statements), "--dev", "first", "--device", "cpu"]
    soft = tmp_path / "soft.jsonl.gz"
    document_teacher.main([*given, "--encoder", str(folder), "--epochs", "1", "--output", str(soft)])
    rows = read_soft(soft)
    assert {row.text for row in rows} <= {f"Hotel {n}\n{TEXT}" for n in range(4)} | {"No lift."}
    assert all(sum(row.says) == pytest.approx(1, abs=0.01) for row in rows)
    assert all(row.condition not in ("a lift", "dogs") for row in rows if row.text == "No lift.")
    assert "first: affirmed against the rest" in capsys.readouterr().out
    for number in (0, 1):
        output = ["--output", str(tmp_path / f"{number}.safetensors"), "--seed", str(number)]
        document_reader.main([*given, "--soft", str(soft), "--epochs", "1", "--rank", "4", *output])
    learned = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (learned["labels"], learned["soft"]) == (14, len(rows))
    assert set(learned["first"]) >= {"affirmed against denied", "right of three"}


def test_of_countries_that_are_no_members_silence_is_no_denial():
    """A kingdom's text says that it is no republic; that of a country outside NATO says nothing of NATO."""
    labels = document_labels.country_labels()
    says = {
        name: Counter(label.says for label in labels if name in label.phrases)
        for name in ("monarchies", "members of NATO")
    }
    assert set(says["monarchies"]) == {AFFIRMED, NOT_AFFIRMED}
    assert set(says["members of NATO"]) == {AFFIRMED, SILENT}
    assert all(len(set(each.values())) == 1 for each in says.values())  # as many others as members
    silent = {
        label.text for label in labels if label.says == SILENT and "countries on the Caribbean Sea" in label.phrases
    }
    assert not [text for text in silent if "no access to the sea" in text]


def test_an_author_who_has_no_trades_is_one_line():
    with pytest.raises(DataError, match=r"--dev: 'frist' is no author of the trades: anglers, .*, talkers"):
        Labels.read(["frist"], None, None)
