"""The cue lexicon: what is a cue, where, and of which operator."""

import ast
import sys
from pathlib import Path

import pytest

import boolbert.boolean
from boolbert.core.errors import BoolBertError
from boolbert.data.labels import CueSpan, cue_table, find_cues, operators_of, read_parts
from boolbert.data.labels.exclusion import excludes
from boolbert.data.labels.lexicon import NOT_RULES, read_table


def cues(text):
    return [(cue.text, cue.operator) for cue in find_cues(text) if not cue.weak]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("films either French and silent or Dutch", [("either", "or"), ("and", "and"), ("or", "or")]),
        ("trees of Cuba as well as Haiti", [("as well as", "and")]),
        ("birds that are also pets", [("are also", "and")]),
        ("not only cheap but also good", [("not only", "and"), ("but also", "and")]),
        ("plants of both Peru and Chile", [("both", "and"), ("and", "and")]),
        ("cats and/or dogs", [("and/or", "or")]),
        ("any of these", [("any of", "or")]),
        ("fish but not sharks", [("but not", "not")]),
        ("Cats AND NOT dogs", [("AND NOT", "not")]),
        ("films that are funny and are not French", [("not", "not")]),
        ("neither cats nor dogs", [("neither", "not"), ("nor", "not")]),
        ("a dog, not a cat either", [("not", "not")]),
        ("with the exception of cats", [("with the exception of", "not")]),
        ("novels other than thrillers", [("other than", "not")]),
        ("birds that are not also fish", [("not also", "not")]),
        ("soups\n\twithout  meat, in\naddition to bread", [("without", "not"), ("in\naddition to", "and")]),
        ("tea and instead of milk, lemon", [("and", "and")]),  # a weak NOT takes no "and" away
        ("Harper & Brothers, cats & dogs", [("&", "and")]),
        ('"cats and dogs"', [("and", "and")]),  # the whole query is quoted, so it is no name
        ('"cats" and "dogs"', [("and", "and")]),
        ('a 5" and a 6" nail', [("and", "and")]),
        ("non-American films", [("non-", "not")]),
        ("Non American films", [("Non", "not")]),
        ("non‑science books", [("non‑", "not")]),
    ],
)
def test_cues(text, expected):
    assert cues(text) == expected


@pytest.mark.parametrize("apostrophe", "'’‘ʼ`´′＇")
def test_any_apostrophe(apostrophe):
    for word in ("aren", "isn", "doesn", "weren", "can", "won"):
        text = f"films that {word.upper()}{apostrophe}T new"
        assert cues(text) == [(f"{word.upper()}{apostrophe}T", "not")]


@pytest.mark.parametrize(
    "text",
    [
        *("Notting Hill", "Android", "northern", "Orlando", "sand", "nothingness", "Nora"),
        *("notable", "Alsop", "minuscule"),
        *("black-and-white films", "a not-for-profit", "R&B and-so-called"),
        *("films from Trinidad and Tobago", "São Tomé and Príncipe", "black and white films", "Rock and Roll"),
        *("novels set between 1900 and 1910", "ten or more", "No. 5", "no 5", "whether or not", "nothing but comedies"),
        *('"War and Peace" films', "books like “Of Mice and Men”"),
        *("non-fiction books", "non fiction", "nonlinear films", "non"),
    ],
)
def test_no_cue(text):
    assert cues(text) == []


def test_weak_cues_are_found_but_do_not_count():
    text = "articles on climate policy favoring renewables over fossil fuels"
    assert [(cue.text, cue.operator, cue.weak) for cue in find_cues(text)] == [("over", "not", True)]
    assert operators_of(text) == set()
    assert operators_of(text, weak=True) == {"not"}
    assert operators_of("tea instead of coffee", weak=True) == {"not"}
    assert find_cues("over 100 films") == []


def test_relative_clause_is_weak_unless_a_cue_follows():
    assert [cue.weak for cue in find_cues("films that are French")] == [True]
    assert [cue.text for cue in find_cues("films that are not French")] == ["not"]
    assert [cue.text for cue in find_cues("films that are also French")] == ["are also"]


def test_every_line_of_the_table_is_found_whole():
    for phrase, cue in cue_table().cues.items():
        found = find_cues(f"cats {phrase} dogs or birds")[:1]  # "either" needs an "or"
        if cue.rule == "fixed":
            assert [span.text for span in found] == ["or"], phrase
        elif cue.rule == "suffix":
            assert find_cues(f"cats{phrase} dogs")[0].rule == "suffix"
        elif cue.phrase != "on top of":  # only where others are asked for
            assert [(span.text, span.operator) for span in found] == [(phrase, cue.operator)]
            assert found[0].weak == (cue.weak or cue.rule == "place")  # no place follows


def test_a_cue_of_any_rule_can_be_decided():
    """No line of the table ends in a question that nothing answers."""
    for rule in NOT_RULES:
        span = CueSpan(5, 8, "not", "foo", rule=rule)
        assert isinstance(excludes("cats foo dogs", span), bool)
    with pytest.raises(ValueError, match="no rule 'sometimes'"):
        excludes("cats foo dogs", span._replace(rule="sometimes"))


def test_a_new_cue_is_one_line(tmp_path, monkeypatch):
    """It is found, it excludes, it is written by augmentation's list, and the other lines stay as they are."""
    table = (ROOT / "data" / "labels" / "cues_en.tsv").read_text("utf-8")
    (tmp_path / "cues_xx.tsv").write_text(table + "shunning\tnot\ttopic\talways\tend leave_out:2\n", "utf-8")
    monkeypatch.setattr("boolbert.data.labels.lexicon._FOLDER", tmp_path)
    try:
        reading = read_parts("birds of Peru shunning the coast", language="xx")
        assert [part.text for part in reading.excluded] == ["the coast"]
        assert reading.cues[0].kind == "topic"
        assert cue_table("xx").written("end")[-1] == "shunning"
        assert "shunning" in cue_table("xx").written("leave_out")[1:3]
    finally:
        cue_table.cache_clear()


def test_a_language_without_a_table_is_one_line():
    with pytest.raises(BoolBertError, match=r"^language must be one of en, got 'de': it has no table of cues$"):
        find_cues("Länder ohne Küste", language="de")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("besides\tnot", "a line has 4 or 5 columns"),
        ("besides\tnay\t-\talways", "operator must be one of"),
        ("besides\tnot\t-\talways", "kind must be one of"),
        ("besides\tnot\ttopic\tsometimes", "rule 'sometimes' does not fit"),
        ("besides\tand\t-\tfixed", "rule 'fixed' does not fit"),
        ("minus\tnot\tset\tcontrast\nminus\tnot\tset\talways", "'minus' stands there twice"),
        ("Ausgenommen\tnot\ttopic\talways", "'Ausgenommen' is found in small letters alone"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    path = tmp_path / "cues_xx.tsv"
    path.write_text(f"# phrase\n{line}\n", "utf-8")
    with pytest.raises(BoolBertError, match=rf"cues_xx.tsv, line {2 + line.count(chr(10))}: {message}"):
        read_table(path)


ROOT = Path(boolbert.boolean.__file__).parents[1]


def test_boolean_needs_only_the_standard_library():
    for path in (ROOT / "boolean").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert all(name.name.split(".")[0] in sys.stdlib_module_names for name in node.names), path
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                assert node.level == 1 or module == "core.errors" or module.split(".")[0] in sys.stdlib_module_names, (
                    path
                )
