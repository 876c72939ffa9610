"""Which NOT a query means, and what is said where nothing is excluded although it seems to say NOT."""

from pathlib import Path

import numpy as np
import pytest

from boolbert import read
from boolbert.boolean.tags import KINDS_OF_NOT
from boolbert.core.errors import BoolBertError
from boolbert.retrieval.adapters import Said
from boolbert.search import query_reader

HERE = Path(__file__).parent
LINES = [line for name in ("kinds_of_not.tsv", "kinds_examples.tsv") for line in (HERE / name).read_text().splitlines()]
QUERIES = [tuple(line.split("\t")[:2]) for line in LINES if not line.startswith("#")]
# What the reader has still to learn. A query that is read right leaves this list.
WRONG = {
    "Which tools are sold in Japan but not in Europe?",
    "What offices did the mayor of the river town hold between the wars, excluding any information about her brother's "
    "newspaper?",
    "Who composed the music of the silent film about the lighthouse, but without any mention of its restoration?",
    "Which animals and colours stand for the goddess of the hearth, excluding her connection to the founding of the "
    "city?",
    "Which bacteria live in milk but are not Listeria?",  # a set, read as a property
    "what are some books that are not in Hebrew?",
}


@pytest.mark.parametrize(("kind", "query"), QUERIES)
def test_kinds(kind, query):
    """What excludes nothing takes nothing away, as a property does."""
    found = read(query)
    assert (found.kind is None) == (not found.excluded)
    assert ((found.kind or "property") == kind) == (query not in WRONG), found.kind


def test_what_is_still_read_wrong_stands_in_the_table():
    assert {query for _, query in QUERIES} > WRONG
    assert len(WRONG) <= 6
    assert {kind for kind, _ in QUERIES} == set(KINDS_OF_NOT)


def test_what_is_typed_is_a_set_and_the_caller_knows_better():
    assert read("What is known about Bach -family").kind == "set"
    query = "What is known about Bach, excluding anything about his family?"
    assert [read(query, kind).kind for kind in (None, *KINDS_OF_NOT)] == ["topic", *KINDS_OF_NOT]
    assert read("islands of Greece", "topic").kind is None
    with pytest.raises(BoolBertError, match=r"^not_kind must be one of topic, set, property, got 'cat'$"):
        read(query, "cat")


# As the rules had it that read queries before: what is taken away, and what is asked for.
TAKEN_AWAY = {
    "Which birds do not fly?": [],
    "countries that do not drive on the left": ["drive on the left"],
    "not cats": [],
    "no nuts please": [],
    "Who had no love for the violin?": [],
    "films not set in India": ["set in India"],
    "islands of Greece": [],
    "non-fiction books": [],
    "books that are not fiction": ["fiction"],
    "La La Land": [],
    "Das Boot": [],
    "sugar": [],
}
WRONG_AWAY = {
    "not cats",  # nothing else is asked for: the whole, cats and all, is asked for, and cats are excluded
    "no nuts please",
}


@pytest.mark.parametrize("query", TAKEN_AWAY)
def test_of_what_a_question_negates_nothing_is_taken_away(query):
    found = read(query)
    out = [] if found.kind == "property" else [one.text for one in found.excluded]
    assert (out == TAKEN_AWAY[query]) == (query not in WRONG_AWAY), out
    assert found.notes == ()


def test_a_query_that_is_too_long_for_its_signs_says_so():
    (note,) = read("hotels " + "-pool " * 300).notes
    assert note.startswith("nothing is excluded: -word and NOT are read in queries of up to 1,000 characters")


class Unsure:
    """A reader that excludes nothing, and that holds for half true that "none" does."""

    def __init__(self):
        self.tokenizer = query_reader.the_reader().tokenizer

    def read(self, ids):
        doubts = [0.5 * (self.tokenizer.id_to_token(token) == "none") for token in ids]
        return Said(np.zeros(len(ids), int), np.array(doubts, np.float32), "set", False)


@pytest.mark.parametrize(("query", "word"), [("novels, none by Sand", "none"), ("novels by Sand", "")])
def test_a_word_that_may_exclude_something_is_named(query, word, monkeypatch):
    reader = Unsure()
    monkeypatch.setattr(query_reader, "open_reader", lambda adapters: reader)
    found = read(query)
    assert (found.excluded, found.doubtful) == ((), word)
    note = (
        "nothing is excluded: it is not certain that “none” leaves something out; to leave something out, write -word "
        "or “without ...”"
    )
    assert found.notes == ((note,) if word else ())
