"""Which NOT a query means, and why nothing is excluded where it seems to say NOT."""

import pytest

from boolbert.boolean import kind_of_exclusion, read_search_box, why_nothing_excluded


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("What is known about Bach, excluding anything about his family?", "topic"),
        ("Can you tell me about Oxford without mentioning the university?", "topic"),
        ("Apart from chess, what else did she play?", "topic"),
        ("In addition to Hamlet, which other plays did he write?", "topic"),
        ("Tell me about whales. Please do not include orcas.", "topic"),
        ("How do I start a business without any information about loans?", "topic"),
        ("films that are not westerns", "set"),
        ("African countries but not islands", "set"),
        ("trees of Korea excluding trees of Japan", "set"),
        ("camping stoves that do not need gas", "set"),
        ("countries that do not drive on the left", "set"),
        ("non-American horror films", "set"),
        ("what are some books that are not in Hebrew?", "set"),
        ("Which bacteria live in milk but are not Listeria?", "set"),
        ("sugar-free desserts", "set"),
        ("Which sequences are found in a gene but are not part of the mature RNA?", "property"),
        ("Which actors have never won an award?", "property"),
        ("What are the protocols that do not use broadcasts?", "property"),
        ("Which tools are sold in Japan but not in Europe?", "property"),
        ("Who had no love for the violin?", "property"),
        ("islands of Greece", "property"),
    ],
)
def test_kinds(query, kind):
    assert kind_of_exclusion(query) == kind


def test_spans_that_are_known_decide_which_cue_counts():
    query = "films that are not westerns, leaving out any mention of dogs"
    assert kind_of_exclusion(query, [(19, 27)]) == "set"
    assert kind_of_exclusion(query, [(query.index("dogs"), len(query))]) == "topic"
    typed = read_search_box("films -westerns")
    assert kind_of_exclusion(typed.text, typed.scopes("not")) == "set"
    assert kind_of_exclusion("films that are not westerns", []) == "set"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("Which birds do not fly?", "“not” negates what the question asks about"),
        ("countries that do not drive on the left", "“not” negates a verb"),
        ("not cats", "only says what to leave out"),
        ("no nuts please", "only says what to leave out"),
        ("Who had no love for the violin?", "“no” alone leaves nothing out"),
        ("films not set in India", "did not see that “not” excludes “set in India”"),
        ("hotels " + "-pool " * 300, "read in queries of up to 1000 characters"),
    ],
)
def test_why_nothing_is_excluded(query, reason):
    line = why_nothing_excluded(query)
    assert reason in line
    assert "\n" not in line


@pytest.mark.parametrize("query", ["islands of Greece", "non-fiction books", "La La Land", "Das Boot", "", "sugar"])
def test_nothing_is_said_where_nothing_was_meant_to_be_excluded(query):
    assert why_nothing_excluded(query) is None
