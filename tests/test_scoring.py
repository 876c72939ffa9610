"""How documents are scored: both stages against slow versions, written from what they mean."""

import math
from dataclasses import replace

import numpy as np
import pytest
from framework_fixtures import bag_of_words

from boolbert.boolean.clauses import split_clauses
from boolbert.boolean.query import query_of
from boolbert.boolean.tags import parse_marked
from boolbert.retrieval import scoring
from boolbert.retrieval.evidence import Evidence, evidence_of, unit_length
from boolbert.retrieval.scoring import Question, first_stage, second_stage
from boolbert.retrieval.words import words_of
from boolbert.search.query_reader import read

TEXTS = [
    "Down jacket. It has a warm hood, two pockets and a zip.",
    "Rain jacket. It comes without a hood. Two pockets.",
    "Down jacket with a zip from 1998. No pockets.",
    "A tent for two, with a zip.",
    "Wool hat. It keeps you warm.",
    "",
]
ROWS = np.arange(len(TEXTS))


def encode(texts):
    """A bag of words as a vector of length 1."""
    return unit_length(bag_of_words(texts, lambda text: words_of(text) or ["nothing"]))


def marked(line, *, asks=False, kind="set"):
    """A query as a person has marked it."""
    found = query_of(*parse_marked(line), "a person", asks=asks)
    return replace(found, kind=kind if found.excluded else None)


HOODS = "Which [w jackets] [w have pockets] [c but no] [x hood]"
ASKED = {
    "one thing": marked("[w jackets with a hood]"),
    "not": marked("[w jackets] [c without a] [x hood]"),
    "or": marked("[a tents] or [a hats]"),
    "and": marked("[w jackets] [w pockets] [w zip]"),
    "all of them": marked("[a jackets] or [a hats] [w warm] [c without] [x pockets] or [x zip]"),
    "a decade": marked("[w things from the 1990s]"),
    "what no text has": marked("[w hats] [c without] [x cheese]"),
    "a denial is wanted": marked("[w jackets] [w without a hood]"),
    "the reader says that a denial is wanted": marked("[w jackets] [n spared hood and pockets]"),
    "a denial is excluded": marked("[w jackets] [c but not] [x no pockets]"),
    "a question": marked(HOODS, asks=True),
    "a question with alternatives": marked("Which [w jackets] have [a pockets] or [a zips]", asks=True),
    "a property": marked("[w jackets] [c without a] [x hood]", kind="property"),
    "a question of a property": marked(HOODS, asks=True, kind="property"),
}
UNRELATED = 0.1  # the cosine of texts that have nothing in common, of an encoder


@pytest.fixture(scope="module")
def evidence():
    return Evidence.in_memory(evidence_of(TEXTS, encode), UNRELATED)


def scored(evidence, asked, rows=ROWS, **options):
    texts = [TEXTS[row] for row in rows]
    return first_stage(evidence, Question.of(asked, encode), rows, whole_scores(texts), encode(texts), **options)


def whole_scores(texts):
    return encode(["jackets"])[0] @ encode(texts).T


def slow_first_stage(evidence, asked, text):
    """One document, one condition and one clause at a time, with vectors as they were before they became bytes."""

    def scale(cosine):
        return (cosine - UNRELATED) / (1 - UNRELATED)

    def cosine(one, other):
        return float(encode([one])[0] @ encode([other])[0])

    def says(part, *, denying):
        """How near the nearest clause is that affirms something, or that denies something."""
        clauses = [text[one.start : one.end] for one in split_clauses(text) if one.denies == denying]
        return scale(max([0.0, *(cosine(part, clause) for clause in clauses)]))

    def bm25(part):
        words = [word for word in words_of(part, split_clauses(part)) if word != "which"]  # which only asks
        return float(evidence.words.scores(words)[TEXTS.index(text)])

    def is_denial(part):
        return any(clause.denies for clause in split_clauses(part))

    def holds(part, denies=False):
        yes, no = says(part, denying=False), says(part, denying=True)
        clause = max(0.7 * yes, no) if denies or is_denial(part) else yes
        return weights.clause * clause + weights.words * bm25(part)

    weights = scoring.QUESTION if asked.asks else scoring.COLLECTION
    ignores_clauses = asked.kind == "property"  # a passage that answers may speak of a property
    about = weights.about if not ignores_clauses else scoring.ABOUT_PROPERTY if asked.asks else 0.0
    groups = [max(holds(part.text, part.denies) for part in group) for group in asked.groups]
    groups = [holds(asked.wanted)] if asked.asks else groups  # one passage answers
    score = weights.whole * float(whole_scores([text])[0])
    score += weights.mean * sum(groups) / len(groups) + (1 - weights.mean) * min(groups)
    for part in (part.text for part in asked.excluded):
        score -= about * max(0.0, scale(cosine(part, text)) - weights.near)
        if ignores_clauses:
            continue
        has, lacks = says(part, denying=is_denial(part)), says(part, denying=not is_denial(part))
        score -= weights.penalty * max(0.0, has - weights.near) + weights.words_penalty * bm25(part)
        if lacks > has:
            score += weights.denial * max(0.0, lacks - weights.near)
    return score


@pytest.mark.parametrize("name", ASKED)
def test_the_first_stage_is_its_formula(evidence, name):
    slow = [slow_first_stage(evidence, ASKED[name], text) for text in TEXTS]
    np.testing.assert_allclose(scored(evidence, ASKED[name]), slow, atol=0.03)  # int8


def test_some_documents_have_the_scores_that_they_have_among_all(evidence):
    some, asked = np.array([5, 3, 0]), ASKED["all of them"]
    np.testing.assert_allclose(scored(evidence, asked, some), scored(evidence, asked)[some], atol=1e-6)


def test_who_denies_what_is_excluded_is_found_and_who_denies_what_is_wanted_is_not(evidence):
    without, having = (scored(evidence, read(f"jackets {end}")) for end in ("without a hood", "with a hood"))
    assert without.argmax() == 1
    assert without[2] > without[0]
    assert having.argmax() == 0


def test_of_a_denial_that_is_excluded_the_thing_itself_is_asked_for():
    """ "Not those that allow no pets": who allows pets stands first, and who allows none last."""
    texts = ["A hotel that allows pets.", "A hotel with a garden.", "A hotel that allows no pets."]
    evidence = Evidence.in_memory(evidence_of(texts, encode), UNRELATED)
    question = Question.of(marked("[w hotel] [c but not] [x allows no pets]"), encode)
    scores = first_stage(evidence, question, np.arange(3), np.zeros(3, np.float32), encode(texts))
    assert np.argsort(-scores).tolist() == [0, 1, 2]


def test_to_an_encoder_that_finds_all_texts_alike_other_denials_say_nothing(tmp_path):
    """ "It has no lift" speaks for no hotel without a pool, though unrelated texts have a cosine of .75, as with e5."""

    def alike(texts):
        own = encode(texts)
        return np.hstack([own, np.full((len(own), 1), np.sqrt(3), np.float32)]) / 2

    texts = ["A hotel. It has no lift.", "A hotel. It has a garden.", "A hotel. It has no pool.", *TEXTS[:5]]
    Evidence.build(tmp_path / "evidence", texts, alike, corpus="c", model="m", progress=False)
    evidence = Evidence(tmp_path / "evidence", "c", "m")
    assert 0.7 < evidence.unrelated < 0.8
    question = Question.of(marked("[w hotel] [c without] [x pool]"), alike)
    scores = first_stage(evidence, question, np.arange(3), np.zeros(3, np.float32), alike(texts[:3]))
    assert scores[0] == pytest.approx(scores[1], abs=0.05)
    assert scores[2] > scores[0] + 0.3


def test_strength_0_excludes_nothing(evidence):
    asked = ASKED["all of them"]
    scores = scored(evidence, asked, strength=0.0)
    np.testing.assert_allclose(scores, scored(evidence, replace(asked, conditions=sum(asked.groups, ()))), atol=1e-6)


def test_a_text_about_a_negated_property_loses_and_one_that_mentions_it_does_not():
    texts = ["Hoods: the hood of a hood.", "Rain jackets with two pockets and a zip, which pack small and have a hood."]
    evidence, vectors = Evidence.in_memory(evidence_of(texts, encode)), encode(texts)
    question = Question.of(ASKED["a question of a property"], encode)
    without, lost = (
        first_stage(evidence, question, np.arange(2), np.zeros(2), vectors, strength=strength)
        for strength in (0.0, 1.0)
    )
    assert lost[0] < without[0]
    assert lost[1] == without[1]


def test_documents_without_a_word_are_scored_by_their_vectors():
    evidence = Evidence.in_memory(evidence_of(["", " "], encode))
    question = Question.of(ASKED["not"], encode)
    whole = np.array([0.2, 0.4], np.float32)
    assert first_stage(evidence, question, np.arange(2), whole, encode(["", " "])).argmax() == 1


@pytest.mark.filterwarnings("error")
def test_documents_that_all_say_the_same_have_scores(tmp_path):
    texts = ["A hotel with a pool."] * 3
    Evidence.build(tmp_path / "evidence", texts, encode, corpus="c", model="m", progress=False)
    evidence = Evidence(tmp_path / "evidence", "c", "m")
    assert evidence.unrelated == 1.0
    question = Question.of(marked("[w hotel] [c without] [x pool]"), encode)
    assert np.isfinite(first_stage(evidence, question, np.arange(3), np.zeros(3, np.float32), encode(texts))).all()


def slow_second_stage(asked, probabilities):
    """One document. probabilities: by a condition's text that it holds."""
    weights = scoring.QUESTION if asked.asks else scoring.COLLECTION

    def log(probability, floor=weights.floor):
        return math.log(max(floor, probability))

    if asked.asks:
        return weights.read_wanted * log(probabilities[asked.text])
    logs = []
    for group in asked.groups:
        none = 1.0
        for part in group:
            none *= 1 - probabilities[part.text]
        logs.append(log(1 - none))
    first, *others = asked.groups[0]
    if (len(asked.groups) > 1 or asked.excluded) and not others and " " not in first.text:  # the kind of documents
        logs[0] = log(probabilities[first.text], 0.2) / 2
    score = weights.read_wanted * sum(logs) / len(logs)
    if asked.kind != "property":
        score += weights.read_excluded * sum(log(1 - probabilities[part.text]) for part in asked.excluded)
    return score


@pytest.mark.parametrize("name", ASKED)
def test_the_second_stage_is_its_formula(name):
    asked = ASKED[name]
    parts = [asked.text] if asked.asks else [part.text for part in asked.conditions]
    affirmed = np.random.default_rng(0).random((len(parts), 20))
    affirmed[:, :2] = [[0, 1]] * len(parts)  # as sure as can be
    slow = [slow_second_stage(asked, dict(zip(parts, column, strict=True))) for column in affirmed.T]
    np.testing.assert_allclose(second_stage(Question.of(asked, encode), affirmed), slow, rtol=1e-6)


def test_what_is_read_ranks_by_what_is_wanted_and_what_is_not():
    """Documents: hotel without a pool, hotel with one, no hotel. And a reader's doubt about NOT has its strength."""
    affirmed = np.array([[0.9, 0.9, 0.1], [0.1, 0.9, 0.1]])
    question = Question.of(marked("[w hotel] [c without] [x pool]"), encode)
    scores = second_stage(question, affirmed)
    assert scores.argmax() == 0
    assert second_stage(question, affirmed, strength=0.0)[0] == second_stage(question, affirmed, strength=0.0)[1]


def test_what_documents_do_not_say_of_their_kind_weighs_less():
    """A field without electricity, which does not say that it is a campsite, and a campsite that has it."""
    affirmed = np.array([[0.02, 0.98], [0.02, 0.7]])
    by_kind = second_stage(Question.of(marked("[w campsite] [c without] [x electricity]"), encode), affirmed)
    assert by_kind.argmax() == 0
    alone = Question.of(marked("[w campsite]"), encode)
    assert not alone.names_kind  # nothing else is asked for
    assert not Question.of(marked("[w in Paris] [w hotel]"), encode).names_kind
    assert second_stage(alone, affirmed[:1]).argmax() == 1


LONG = "a house by the sea with old oak doors, seven chimneys and a garden wall"


def test_a_long_condition_is_not_read_and_changes_nothing():
    affirmed = np.array([[0.9, 0.2], [0.1, 0.9], [0.9, 0.1]])
    question = Question.of(marked(f"[w hotel] [w {LONG}] [c without] [x pool]"), encode)
    assert [part.is_read for part in question.parts] == [True, False, True]
    other = affirmed.copy()
    other[1] = 0.5
    np.testing.assert_array_equal(second_stage(question, affirmed), second_stage(question, other))
    assert second_stage(question, affirmed)[0] != second_stage(question, affirmed)[1]
    assert not Question.of(marked(f"[w {LONG}]"), encode).is_read  # nothing is left to read
