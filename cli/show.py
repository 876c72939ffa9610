"""Answers and explanations as text for a terminal."""

import shutil
from collections.abc import Iterator, Sequence

from boolbert.search.explain import Explanation, OperatorReading
from boolbert.search.searcher import Answer
from boolbert.terminal import fitted, printable

from .colours import background, foreground, has_colour, paint

SIGNS = {"and": "+", "or": "+", "not": "−"}
LABEL = 11  # columns of the row labels
CELL = 6  # "+0.042"
WORD, TITLE = 40, 60  # what is longer is cut


def show_answer(answer: Answer, *, colour: bool | None = None, width: int | None = None) -> str:
    """The operators, then a line for each hit: rank, score, title and the beginning of its text."""
    colour = has_colour() if colour is None else colour
    width = width or shutil.get_terminal_size((100, 24)).columns
    lines = [f"operators: {show_operators(answer.operators, colour)} (said by {answer.decided_by})", ""]
    digits = len(str(len(answer)))
    title_width = max((len(fitted(hit.title, 34)) for hit in answer), default=0)
    for hit in answer:
        head = f"{hit.rank:>{digits}}  {hit.score:6.3f}  "
        title = fitted(hit.title, title_width)
        room = width - len(head) - title_width - 2
        text = fitted(hit.text, room) if room > 20 else ""
        padded = paint(title.ljust(title_width), "1", colour=colour)
        lines.append(f"{head}{padded}  {paint(text, '2', colour=colour)}".rstrip())
    return "\n".join(lines)


def show_operators(operators: tuple[str, ...], colour: bool) -> str:
    return " ".join(paint(name.upper(), "1", foreground(name), colour=colour) for name in operators) or "none"


def show_explanation(explanation: Explanation, *, colour: bool | None = None, width: int | None = None) -> str:
    """The query's words in columns, a row for each operator, then both rankings."""
    colour = has_colour() if colour is None else colour
    width = width or shutil.get_terminal_size((100, 24)).columns
    lines = [paint(printable(explanation.query), "1", colour=colour), ""]
    lines += [f"operators  {gates(explanation, colour)}", f"{'said by':<{LABEL}}{explanation.decided_by}"]
    lines.append(f"{'cues':<{LABEL}}{cues(explanation, colour)}")
    if explanation.truncated:
        lines.append(f"{'note':<{LABEL}}the query is longer than the model reads; its last words were cut off")
    lines.append("")
    if explanation.answer.operators:
        for words in columns(explanation, width):
            lines += [*table(explanation, words, colour), ""]
        lines += [
            "[word]: a cue. Numbers: what attention to the word gains (+) or loses (−), mean over heads and layers;",
            f"below: the share of them that reach it. Strongest: {explanation.number(explanation.strongest)}.",
        ]
    else:
        lines.append("No operator is on: this is plain BERT.")
    return "\n".join([*lines, "", *results(explanation, colour)])


def gates(explanation: Explanation, colour: bool) -> str:
    parts = []
    for reading in explanation.readings:
        state = f"{reading.operator.upper()} {'on' if reading.on else 'off'}"
        codes = ["1", foreground(reading.operator)] if reading.on else ["2"]
        parts.append(f"{paint(state, *codes, colour=colour)} (gate {reading.gate:.2f})")
    return "   ".join(parts)


def cues(explanation: Explanation, colour: bool) -> str:
    """The model's cues word by word with their probability; the lexicon's where the model is untrained."""
    found = []
    for reading in explanation.readings:
        for word, is_cue, probability in zip(explanation.words, reading.cues, reading.cue_probabilities, strict=True):
            if is_cue:
                name = paint(reading.operator.upper(), foreground(reading.operator), colour=colour)
                sure = f" {probability:.2f}" if explanation.trained else " (lexicon)"
                found.append(f"“{fitted(word.text, WORD)}” {name}{sure}")
    return ", ".join(found) or "none found"


def columns(explanation: Explanation, width: int) -> Iterator[list[int]]:
    """The numbers of the words that stand side by side; a long query takes several blocks."""
    block: list[int] = []
    used = LABEL
    for word in range(len(explanation.words)):
        size = cell_width(explanation, word) + 1
        if block and used + size > width:
            yield block
            block, used = [], LABEL
        block.append(word)
        used += size
    yield block


def cell_width(explanation: Explanation, word: int) -> int:
    return max(len(fitted(explanation.words[word].text, WORD)) + 2, CELL)


def table(explanation: Explanation, words: Sequence[int], colour: bool) -> list[str]:
    head = " " * LABEL
    for word in words:
        cued = explanation.cue_operator(word)
        text = fitted(explanation.words[word].text, WORD)
        text = f"[{text}]" if cued else text
        codes = ["1", foreground(cued)] if cued else []
        head += paint(text.center(cell_width(explanation, word)), *codes, colour=colour) + " "
    lines = [head.rstrip()]
    for reading in explanation.readings:
        if reading.on:
            lines += operator_rows(explanation, reading, words, colour)
    return lines


def operator_rows(explanation: Explanation, reading: OperatorReading, words: Sequence[int], colour: bool) -> list[str]:
    label = f"{reading.operator.upper():<4}"
    strengths = paint(label, "1", foreground(reading.operator), colour=colour) + "adds".ljust(LABEL - 4)
    if reading.operator == "not":
        strengths = strengths.replace("adds ", "takes")
    reached = f"{'':<4}{'reach':<{LABEL - 4}}"
    strongest = explanation.strongest or 1.0
    for word in words:
        size = cell_width(explanation, word)
        value = reading.strength[word]
        text = f"{SIGNS[reading.operator]}{explanation.number(value)}".center(size)
        shade = background(reading.operator, value / strongest)
        strengths += paint(text, *shade, colour=colour) + " "
        reached += paint(f"{reading.scope[word]:.0%}".center(size), "2", colour=colour) + " "
    return [strengths.rstrip(), reached.rstrip()]


def results(explanation: Explanation, colour: bool) -> list[str]:
    """Both rankings side by side, and how far each result moved."""
    changes = explanation.changes
    titles = [fitted(change.title, TITLE) for change in changes]
    plain = [fitted(hit.title, TITLE) for hit in explanation.plain][: len(changes)]
    width = max([len("with operators"), *map(len, titles)]) + 10
    head = f"{'':4}{'with operators':<{width}}{printable(explanation.plain_name)}"
    lines = [paint(head, "1", colour=colour)]
    for change, title, other in zip(changes, titles, plain, strict=True):
        moved = change.moved
        codes = [] if not moved else ["32"] if moved[0] in "▲n" else ["31"]
        padding = " " * (width - len(title) - 2 - len(moved))
        lines.append(f"{change.rank:>2}  {title}  {paint(moved, *codes, colour=colour)}{padding}{other}".rstrip())
    same = sum(change.before is not None and change.before <= len(changes) for change in changes)
    lines.append(f"{same} of {len(changes)} results are in both lists")
    return lines
