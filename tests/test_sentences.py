"""Boolean sentences for pretraining."""

import itertools
import re
import time
from random import Random

import pytest

from boolbert.boolean import OPERATORS, operators_of, read_parts
from boolbert.data.sentences import boolean_sentences, labelled
from boolbert.data.sentences.generate import PLANS, words_of
from boolbert.data.sentences.lists import DOMAINS, FRAMES, TOPIC_FRAMES
from boolbert.data.sentences.writers import AtomWriter, TopicWriter

LISTS = ("adjectives", "phrases", "kinds", "topics")


def texts(triplet):
    return [triplet["G"], *triplet["P"], *triplet["N"]]


def words_in(text, spans):
    """The words that lie in spans, by where they begin."""
    words = [match.span() for match in re.finditer(r"\w+(?:['’]\w+)*", text)]
    return {start for start, end in words if any(start < right and end > left for left, right in spans)}


def operators_meant(meaning):
    """A meaning is named by its formula."""
    return {"not"} if meaning in ("neither", "none") else set(OPERATORS) & set(re.findall(r"\w+", meaning))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_schema_and_operators(operator, split):
    triplets = boolean_sentences(operator, 300, seed=1, split=split)
    assert len({triplet["G"] for triplet in triplets}) == 300
    for triplet in triplets:
        assert set(triplet) == {"G", "P", "N"}
        assert (len(triplet["P"]), len(triplet["N"])) == (2, 3)
        assert len(set(texts(triplet))) == 6
        meant = {operators_of(text) == operators_of(triplet["G"]) for text in triplet["P"]}
        assert meant == {True}
        assert operator in operators_of(triplet["G"])


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.name)
def test_every_wording_has_the_operators_of_its_meaning(domain):
    rng = Random(0)
    for meaning, frames in FRAMES.items():
        operators = operators_meant(meaning)
        order = "".join(name for name in "abc" if f"{{{name}}}" in "".join(frames).lower())
        for _ in range(40):
            (text,) = AtomWriter(domain, len(order), rng).write(meaning, [order])
            assert operators_of(text) == operators, (meaning, text)
            if meaning in TOPIC_FRAMES:
                (text,) = TopicWriter(domain, rng).write(meaning, ["ab"])
                assert operators_of(text) == operators, (meaning, text)


def test_plans_oppose_meanings():
    for operator, plans in PLANS.items():
        assert sum(plan.share for plan in plans) == pytest.approx(1)
        for plan in plans:
            assert operator in operators_meant(plan.meaning)
            for meaning, order in (*plan.always, *plan.others):
                assert meaning != plan.meaning or order not in plan.orders


def test_negatives_share_the_words():
    """What tells P from N is not the topic: on average N has as many content words of G as P has."""
    cue = re.compile(r"\W+")
    shared = {"P": 0.0, "N": 0.0}
    for triplet in itertools.chain.from_iterable(boolean_sentences(operator, 200) for operator in OPERATORS):
        words = {word for word in cue.split(triplet["G"].lower()) if len(word) > 4}
        for side in shared:
            overlap = [len(words & set(cue.split(text.lower()))) / max(len(words), 1) for text in triplet[side]]
            shared[side] += sum(overlap) / len(overlap) / 600
    assert shared["N"] > 0.6
    assert abs(shared["P"] - shared["N"]) < 0.1


def test_words_are_plain_plenty_and_apart():
    words = [word for domain in DOMAINS for name in LISTS for word in getattr(domain, name)]
    assert len(set(words)) > 500
    assert all(operators_of(word) == set() and word for word in words)
    parts = {}
    for split in ("train", "dev"):
        domains = [words_of(domain, split) for domain in DOMAINS]
        assert all(len(getattr(domain, name)) >= 3 for domain in domains for name in LISTS)
        parts[split] = {word for domain in domains for name in LISTS for word in getattr(domain, name)}
    assert not parts["train"] & parts["dev"]
    assert parts["train"] | parts["dev"] == set(words)


def test_deterministic_and_fast():
    start = time.perf_counter()
    triplets = {operator: boolean_sentences(operator, 2000) for operator in OPERATORS}
    assert time.perf_counter() - start < 10  # about a second on an idle core
    assert boolean_sentences("or", 20) == triplets["or"][:20]
    assert boolean_sentences("or", 20, seed=1) != boolean_sentences("or", 20)


def test_bad_arguments():
    with pytest.raises(ValueError, match="operator must be one of"):
        boolean_sentences("xor", 1)
    with pytest.raises(ValueError, match="split must be one of"):
        boolean_sentences("and", 1, split="test")
    with pytest.raises(ValueError, match="must not be negative"):
        boolean_sentences("and", -1)
    assert boolean_sentences("and", 0) == []


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
