"""Evidence: what documents say, clause by clause, and Boolean algebra over it."""

import json
import math
import shutil

import numpy as np
import pytest
from framework_fixtures import bag_of_words

from boolbert.boolean.clauses import split_clauses
from boolbert.boolean.conditions import read_conditions
from boolbert.core.errors import RetrievalError
from boolbert.retrieval import evidence as module
from boolbert.retrieval.evidence import ConditionVectors, Evidence, unit_length
from boolbert.retrieval.words import words_of

TEXTS = [
    "Down jacket. It has a warm hood, two pockets and a zip.",
    "Rain jacket. It comes without a hood. Two pockets.",
    "Down jacket with a zip from 1998. No pockets.",
    "A tent for two, with a zip.",
    "Wool hat. It keeps you warm.",
    "",
]
ROWS = np.arange(len(TEXTS))
QUERIES = (
    "jackets with a hood",
    "jackets without a hood",
    "tents or hats",
    "jackets that have pockets and have a zip",
    "jackets that are warm but not jackets with pockets or a zip",
    "things from the 1990s",
    "hats without cheese",
    "Which jackets have pockets, but not a hood?",
    "Which jackets have pockets, but do not have a hood?",
)


def encode(texts):
    """A bag of words as a vector of length 1."""
    return unit_length(bag_of_words(texts, lambda text: words_of(text) or ["nothing"]))


VECTORS = encode(TEXTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "evidence"
    Evidence.build(path, TEXTS, encode, corpus="these", model="bag", progress=False)
    return path


@pytest.fixture(scope="module")
def evidence(folder):
    return Evidence(folder, "these", "bag")


def whole_scores(query):
    return encode([query])[0] @ encode(TEXTS).T


def slow_score(query, row, words):
    """The formula, one document and one clause at a time, with vectors as they were before they became bytes."""
    text = TEXTS[row]

    def best(part, denying):
        found = [0.0]
        for clause in split_clauses(text):
            if clause.denies == denying:
                found.append(float(encode([part])[0] @ encode([text[clause.start : clause.end]])[0]))
        return max(found)

    def bm25(part):
        return float(words.scores(words_of(part, split_clauses(part)))[row])

    def leaf(part):
        asks_for_denial = any(clause.denies for clause in split_clauses(part))
        clause = max(module.AFFIRMED * best(part, False), best(part, True)) if asks_for_denial else best(part, False)
        return weights.clause * clause + module.WORDS * bm25(part)

    asked = read_conditions(query)
    weights = module.QUESTION if query.endswith("?") else module.COLLECTION
    if asked.kind == "property":
        about = module.ABOUT_PROPERTY if query.endswith("?") else 0.0
        weights = weights._replace(penalty=0.0, words_penalty=0.0, denial=0.0, about=about)
    groups = [max(leaf(part.text) for part in group) for group in asked.wanted]
    score = weights.whole * float(whole_scores(query)[row])
    score += module.MEAN * sum(groups) / len(groups) + (1 - module.MEAN) * min(groups)
    for part in asked.excluded:
        yes, no = best(part.text, False), best(part.text, True)
        score -= weights.penalty * max(0.0, yes - module.NEAR) + weights.words_penalty * bm25(part.text)
        score -= weights.about * max(0.0, float(encode([part.text])[0] @ encode([text])[0]) - module.ABOUT)
        if no > yes:
            score += weights.denial * max(0.0, no - module.NEAR)
    return score


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_those_of_the_formula(evidence, query):
    slow = [slow_score(query, row, evidence.words) for row in ROWS]
    np.testing.assert_allclose(scored(evidence, query), slow, atol=0.02)  # int8


def test_some_documents_have_the_scores_that_they_have_among_all(evidence):
    question, some = ConditionVectors.of(read_conditions(QUERIES[4]), encode), np.array([5, 3, 0])
    scores = evidence.score(question, some, whole_scores(QUERIES[4])[some], VECTORS[some])
    np.testing.assert_allclose(scores, scored(evidence, QUERIES[4])[some], atol=1e-6)


def scored(evidence, query, **options):
    question = ConditionVectors.of(read_conditions(query), encode)
    return evidence.score(question, ROWS, whole_scores(query), VECTORS, **options)


def test_who_denies_what_is_excluded_is_found_and_who_denies_what_is_wanted_is_not(evidence):
    without, having = (scored(evidence, query) for query in ("jackets without a hood", "jackets with a hood"))
    assert without.argmax() == 1
    assert without[2] > without[0]
    assert having.argmax() == 0


def test_strength_0_excludes_nothing(evidence):
    query = "jackets that are warm but not jackets with a zip"
    wanted_only = ConditionVectors(ConditionVectors.of(read_conditions(query), encode).wanted, ())
    scores = scored(evidence, query, strength=0.0)
    np.testing.assert_allclose(scores, evidence.score(wanted_only, ROWS, whole_scores(query), VECTORS), atol=1e-6)


def test_a_text_about_a_negated_property_loses_and_one_that_mentions_it_does_not(tmp_path):
    texts = ["Hoods: the hood of a hood.", "Rain jackets with two pockets and a zip, which pack small and have a hood."]
    Evidence.build(tmp_path / "evidence", texts, encode, corpus="c", model="m", progress=False)
    read = read_conditions("Which jackets have pockets, but do not have a hood?")
    question, vectors = ConditionVectors.of(read, encode), encode(texts)
    assert read.kind == "property"
    without, lost = (
        Evidence(tmp_path / "evidence", "c", "m").score(question, np.arange(2), np.zeros(2), vectors, strength=strength)
        for strength in (0.0, 1.0)
    )
    assert lost[0] < without[0]
    assert lost[1] == without[1]


@pytest.mark.parametrize("words", [["zip"], ["zip", "pocket"], ["warm", "cheese"], ["cheese"]])
def test_words_are_scored_by_bm25_of_which_a_share_is_enough(evidence, words):
    counted = [words_of(text, split_clauses(text), decades=True) for text in TEXTS]
    mean = sum(map(len, counted)) / len(counted)
    rare = {
        word: math.log(1 + (100 - held + 0.5) / (held + 0.5))
        for word in words
        for held in [sum(word in own for own in counted)]
    }
    scores = [
        sum(rare[word] * own.count(word) / (own.count(word) + 1.5 * (0.25 + 0.75 * len(own) / mean)) for word in words)
        for own in counted
    ]
    slow = [min(1.0, score / (0.35 * sum(rare.values()))) for score in scores]
    np.testing.assert_allclose(evidence.words.scores(words), slow, atol=2e-3)  # float16


@pytest.mark.parametrize(("words", "row"), [(["hood"], 0), (["-hood"], 1), (words_of("the 1990s"), 2)])
def test_a_denied_word_is_another_word_and_a_year_is_found_by_its_decade(evidence, words, row):
    assert np.flatnonzero(evidence.words.scores(words)).tolist() == [row]


def test_the_nearest_clause_is_a_stretch_of_the_text(evidence):
    (asked,) = ConditionVectors.of(read_conditions("a warm hood"), encode).wanted[0]
    found = evidence.nearest(asked, 0, denies=False)
    assert TEXTS[0][found.start : found.end] == "It has a warm hood, two pockets and a zip"
    assert evidence.nearest(asked, 5, denies=False) is None
    denied = evidence.nearest(asked, 1, denies=True)
    assert "without a hood" in TEXTS[1][denied.start : denied.end]


def test_evidence_of_other_documents_or_another_model_is_refused(folder):
    for known in (("others", "bag"), ("these", "another")):
        with pytest.raises(RetrievalError, match="belongs to other documents or another model"):
            Evidence(folder, *known)


OTHERS = ["Red car. It has no roof. Fast.", "Blue boat without sails."]
FILES = ("evidence.json", "vectors.npy", "scales.npy", "clauses.npy", "starts.npy")
FILES = (*FILES, *(f"words/{name}" for name in ("words.txt", "starts.npy", "rows.npy", "weights.npy")))
DAMAGE = {
    "empty": lambda path, others: path.write_bytes(b""),
    "cut": lambda path, others: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path, others: path.write_bytes(b"\xff\x00" * path.stat().st_size),
    "gone": lambda path, others: path.unlink(),
    "of another index": lambda path, others: shutil.copy(others, path),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_damage_is_one_line(folder, tmp_path, name, damage):
    Evidence.build(tmp_path / "others", OTHERS, encode, corpus="others", model="bag", progress=False)
    damaged = tmp_path / "evidence"
    shutil.copytree(folder, damaged)
    DAMAGE[damage](damaged / name, tmp_path / "others" / name)
    with pytest.raises(RetrievalError, match="evidence") as error:
        Evidence(damaged, "these", "bag")
    assert "\n" not in str(error.value)


NUMBERS = [name for name in FILES if name.endswith(".npy")]
NUMBERS += ["checks.npy", "words/counts.npy", "words/lengths.npy", "words/checks.npy"]


def read_all(folder):
    """Every number that a search or a copy asks for."""
    evidence = Evidence(folder, "these", "bag")
    evidence.best(encode(["a warm hood"]), ROWS)
    words = {word for document in evidence.documents(ROWS) for word in document.words}
    return [evidence.words.weights(word) for word in sorted(words)]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_changed_number_is_noticed(folder, tmp_path, name):
    shutil.copytree(folder, tmp_path / "evidence")
    path = tmp_path / "evidence" / name
    content = path.read_bytes()
    header = content.index(b"\n") + 1
    read_all(tmp_path / "evidence")
    for place in np.linspace(header, len(content) - 1, 12).astype(int):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(RetrievalError, match=r"evidence: (is damaged|was changed after it was written)"):
            read_all(tmp_path / "evidence")


def test_a_build_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        Evidence.build(tmp_path / "evidence", TEXTS, lambda texts: 1 / 0, corpus="c", model="m", progress=False)
    assert not list(tmp_path.iterdir())


def test_documents_without_a_word_have_evidence_too(tmp_path):
    Evidence.build(tmp_path / "evidence", ["", " "], encode, corpus="c", model="m", progress=False)
    empty = Evidence(tmp_path / "evidence", "c", "m")
    question = ConditionVectors.of(read_conditions("jackets without a hood"), encode)
    assert empty.score(question, np.arange(2), np.array([0.2, 0.4], np.float32), encode(["", " "])).argmax() == 1
    assert json.loads((tmp_path / "evidence" / "evidence.json").read_text())["documents"] == 2
