"""Pages made from any texts, parsed back by a real HTML parser: no text makes an element or an attribute."""

import re
from dataclasses import replace

import html5lib
import numpy as np
import pytest
from fuzz.strategies import fuzz, real_texts
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from boolbert.boolean import OPERATORS
from boolbert.boolean.query import split_words
from boolbert.cli.show import show_answer, show_explanation
from boolbert.data import Corpus, Document, Gold
from boolbert.data.tasks import Question, Task
from boolbert.eval.report import write_report
from boolbert.eval.results import Result
from boolbert.hub.card import literal
from boolbert.hub.refuse import text_refusals
from boolbert.search.answer import Answer, Hit
from boolbert.search.explanation import Change, Explanation, OperatorAttention
from boolbert.search.query_reader import as_it_is

pytestmark = pytest.mark.long

titles = st.lists(real_texts, min_size=2, max_size=3)


def skeleton(page):
    """Every element with the names of its attributes, in order; and all text with the attributes' values.

    The style sheet, the longest part, holds no text from data: it is compared as it is.
    """
    head, style, rest = re.fullmatch(r"(.*?<style>)(.*?)(</style>.*)", page, re.DOTALL).groups()
    document = html5lib.parse(head + rest, namespaceHTMLElements=False)
    elements = [(element.tag, *element.attrib) for element in document.iter()]
    words = [*document.itertext(), *(value for element in document.iter() for value in element.attrib.values())]
    return [*elements, style], " ".join(words)


def explanation(query, found, plain_name, numbers):
    """Words of every role, in an order that the numbers decide."""
    words = split_words(query)
    values = [numbers[place % len(numbers)] for place in range(len(words))]
    roles = ({}, {"excluded": True}, {"cue": "not"}, {"alternative": 1}, {"alternative": 2})
    words = tuple(word._replace(**roles[int(value) % 5]) for word, value in zip(words, values, strict=True))
    attention = [
        OperatorAttention(operator, number != 1, 0.5, values, values, values, values)
        for number, operator in enumerate(OPERATORS)
    ]
    reading = replace(as_it_is(query), operators=("and", "not"), words=words)
    changes = [
        Change(Hit(rank, 0.5, rank, title, title, 0.5, 0.1, rank == 1), rank, None)
        for rank, title in enumerate(found, start=1)
    ]
    return Explanation(reading, True, 0.3, (0.35, 0.45), 1, attention, changes, changes, plain_name)


numbers = st.lists(st.floats(0, 9), min_size=1, max_size=5)


@fuzz
@given(query=real_texts, found=titles, plain_name=real_texts, numbers=numbers)
def test_an_explanation(query, found, plain_name, numbers):
    made = explanation(query, found, plain_name, numbers)
    plain = explanation("x " * len(made.reading.words), ["x"] * len(found), "x", numbers)
    shape, words = skeleton(made.page())
    assert shape == skeleton(plain.page())[0]
    visible = re.sub(r"[\s\x00\ufffd]+", "", words)
    for text in (query, *found):
        assert re.sub(r"[\s\x00\ufffd\x80-\x9f\x01-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff]+", "", text)[:40] in strip(
            visible
        )


def strip(text):
    """Without what HTML itself replaces or drops."""
    return re.sub(r"[\x80-\x9f\x01-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff]+", "", text)


@fuzz
@given(query=real_texts, found=titles, plain_name=real_texts, numbers=numbers, width=st.integers(1, 200))
def test_an_explanation_and_an_answer_on_a_terminal(query, found, plain_name, numbers, width):
    made = explanation(query, found, plain_name, numbers)
    found = Answer(made.reading, tuple(change.hit for change in made.after), None)
    answer = show_answer(found, colour=False, width=width)
    for text in (show_explanation(made, colour=False), answer):
        assert re.sub("[\n\u200c\u200d]", "", text).isprintable(), text
    assert answer.count("\n") == 4 + len(found)


def report(folder, systems, data, split, query, found, template):
    """The page on systems that all rank these titles first."""
    metric = {"mean": 0.5, "low": 0.4, "high": 0.6, "queries": 1}
    metrics = {"r_precision": metric, "recall@20": metric}
    common = {"data": data, "split": split, "queries": 1, "documents": 3, "parameters": 9, "latency_ms": 1.0}
    common |= {"metrics": {"all": metrics, "template": {template: metrics}}, "tested_on": "r_precision", "seeds": 1}
    rows = np.arange(len(found))[None]
    corpus = Corpus(Document(title, "") for title in found)
    task = Task(data, split, corpus, [Question("q", query)], Gold(rows, len(found)), groups={"template": [template]})
    summaries = [{"system": name, "reference": systems[0], **common} for name in systems]
    results = [Result(name, 9, {}, np.zeros(rows.shape), rows, 1.0) for name in systems]
    write_report(folder, summaries, results, task)
    return (folder / "report.html").read_text(encoding="utf-8")


@fuzz
@given(
    systems=st.lists(real_texts, min_size=2, max_size=2, unique=True),
    data=real_texts,
    split=real_texts,
    query=real_texts,
    found=st.lists(real_texts, min_size=2, max_size=3, unique=True),
    template=real_texts,
)
@example(systems=["a ±0", "b"], data="x", split="x", query="x", found=["x", "y"], template="x")  # once a margin
def test_a_report(folder, systems, data, split, query, found, template):
    shape, words = skeleton(report(folder, systems, data, split, query, found, template))
    assert shape == skeleton(report(folder, ["a", "b"], "x", "x", "x", list("xyz")[: len(found)], "x"))[0]
    assert strip(re.sub(r"[\s\x00]+", "", query))[:40] in strip(re.sub(r"[\s\x00\ufffd]+", "", words))


@fuzz
@given(name=real_texts)
def test_a_name_in_a_card(name):
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"| a |\n| --- |\n| {literal(name)} |\n")
    document = html5lib.parseFragment(rendered, namespaceHTMLElements=False)
    tags = {element.tag for element in document.iter()}
    assert tags <= {"DOCUMENT_FRAGMENT", "table", "thead", "tbody", "tr", "th", "td", "code"}
    cells = ["".join(element.itertext()) for element in document.iter() if element.tag == "td"]
    assert len(cells) == 1


@fuzz
@given(
    before=real_texts,
    root=st.sampled_from(["home", "nfs", "gpfs", "content", "Users", "x"]),
    name=st.from_regex(r"[a-z]+", fullmatch=True),
)
def test_a_path_is_found_wherever_it_stands(before, root, name):
    assert text_refusals(f'{before} "/{root}/{name}"')
