"""Boolean sentences for pretraining."""

import itertools
import re

import pytest

from boolbert.boolean import OPERATORS
from boolbert.data import read_triplets
from boolbert.data.embedded import sentences_folder
from boolbert.data.labels import operators_of, read_parts
from boolbert.data.sentences import labelled
from boolbert.data.sentences.lists import BEING_FRAMES, DOMAINS, FRAMES, TOPIC_FRAMES, WITH_FRAMES, domain_of_split

LISTS = ("adjectives", "phrases", "kinds", "topics")


def words_in(text, spans):
    """The words that lie in spans, by where they begin."""
    words = [match.span() for match in re.finditer(r"\w+(?:['’]\w+)*", text)]
    return {start for start, end in words if any(start < right and end > left for left, right in spans)}


def operators_meant(meaning):
    """A meaning is named by its formula."""
    return set(OPERATORS) & set(re.findall(r"\w+", meaning))


@pytest.mark.parametrize("split", ["train", "dev"])
def test_triplets_have_the_operator_of_their_file(split):
    triplets = list(read_triplets(sentences_folder(split)))
    assert len({triplet.sentence for triplet in triplets}) == len(triplets)
    for triplet in triplets:
        assert (len(triplet.positives), len(triplet.negatives)) == (2, 3)
        assert len({triplet.sentence, *triplet.positives, *triplet.negatives}) == 6
        assert triplet.operator in operators_of(triplet.sentence)
        assert {frozenset(operators_of(text)) for text in triplet.positives} == {
            frozenset(operators_of(triplet.sentence))
        }


def test_every_wording_has_the_operators_of_its_meaning():
    words = {"h": "films", "A": "French films", "a": "French", "B": "films set in Paris", "b": "set in Paris"}
    words |= {"C": "thrillers", "c": "long", "x": "chess", "y": "grief", "g": "the genre"}
    relations = {"with": WITH_FRAMES, "about": BEING_FRAMES}
    tables = [(FRAMES, ""), *((table, word) for word, own in relations.items() for table in (TOPIC_FRAMES, own))]
    for table, relation in tables:
        for meaning, frames in table.items():
            for frame in frames:
                assert operators_of(frame.format(r=relation, **words)) == operators_meant(meaning), frame


def test_words_are_plain_and_apart():
    words = {word for domain in DOMAINS for name in LISTS for word in getattr(domain, name)}
    assert not any(map(operators_of, words))
    train, dev = (
        {word for domain in DOMAINS for name in LISTS for word in getattr(domain_of_split(domain, split), name)}
        for split in ("train", "dev")
    )
    assert not train & dev
    assert train | dev == words


def test_the_parser_reads_what_made_sentences_exclude(monkeypatch):
    """The writer knows what it excluded: the parser finds the same words, and none where nothing is excluded."""
    pieces, found, meant = [], [], []
    monkeypatch.setattr(
        labelled, "_labelled", lambda parts, made=labelled._labelled: pieces.append(parts) or made(parts)
    )
    labelled.labelled_sentences(2000, seed=7, split="dev")
    for parts in pieces:
        text = "".join(piece for piece, _ in parts)
        ends = [0, *itertools.accumulate(len(piece) for piece, _ in parts)]
        spans = [span for span, (_, excluded) in zip(itertools.pairwise(ends), parts, strict=True) if excluded]
        found.append(words_in(text, read_parts(text).scopes("not")))
        meant.append(words_in(text, spans))
    both = sum(len(words & right) for words, right in zip(found, meant, strict=True))
    assert 2 * both / sum(map(len, [*found, *meant])) > 0.97
    assert not any(words for words, right in zip(found, meant, strict=True) if not right)
