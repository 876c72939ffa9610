"""Answers and explanations as text for a terminal."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from boolbert.boolean.query import COLOURS, Query, WordGroup, listed
from boolbert.core.terminal import fitted, printable
from boolbert.search.answer import Answer, Hit
from boolbert.search.explanation import Change, Explanation
from boolbert.search.reasons import Reason

LABEL = 11  # columns of the row labels
TITLE = 34  # what is longer is cut
BROKEN = "x "  # before a result that the query excludes
SIGNS = {"excluded": ("[-", "-]"), "alternative": ("{", "}")}  # where there is no colour


def has_colour(stream: TextIO | None = None) -> bool:
    """Never into a file; see no-color.org, and FORCE_COLOR is its counterpart, for recordings."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    stream = stream if stream is not None else sys.stdout
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, *codes: str, colour: bool) -> str:
    """
    >>> paint("x", "1", "4", colour=True), paint("x", "1", colour=False)
    ('\\x1b[1;4mx\\x1b[0m', 'x')
    """
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if colour and codes else text


def foreground(operator: str) -> str:
    return "38;2;" + ";".join(map(str, COLOURS[operator]))


ROLES = {"excluded": ("9", foreground("not")), "alternative": ("4", foreground("or"))}


def show_answer(answer: Answer, *, colour: bool | None = None, width: int | None = None, unsure: bool = False) -> str:
    """How the query was read, then a line for each hit: rank, scores, title and the beginning of its text.

    unsure: also list the documents that were left out.
    """
    colour = has_colour() if colour is None else colour
    width = width or shutil.get_terminal_size((100, 24)).columns
    says = f"operators: {show_operators(answer.operators, colour)} (said by {answer.reading.decided_by})"
    lines = [show_reading(answer.reading, colour), says, "", *_show_hits(answer.hits, answer, colour, width)]
    if answer.left_out_line:
        lines += ["", printable(answer.left_out_line)]
    if unsure and answer.unsure:
        lines += ["", "left out:", *_show_hits(answer.unsure, answer, colour, width)]
        lines += [answer.unlisted_line] if answer.unlisted_line else []
    return "\n".join(lines)


def _show_hits(hits: Sequence[Hit], answer: Answer, colour: bool, width: int) -> list[str]:
    lines = []
    digits = len(str(len(hits)))
    excludes = any(hit.excluded is not None for hit in hits)
    if excludes:
        lines.append(paint(f"{'':{digits}}   score  wanted  excluded", "2", colour=colour))
    mark_width = len(BROKEN) if any(hit.violates for hit in hits) else 0
    title_width = max((len(fitted(hit.title, TITLE)) for hit in hits), default=0) + mark_width
    for hit in hits:
        head = f"{hit.rank:>{digits}}  {hit.score:6.3f}  "
        if excludes:
            head += f"{hit.wanted:6.3f}    {hit.excluded:6.3f}  "
        title = paint(_marked(hit, mark_width).ljust(title_width), *_title_codes(hit), colour=colour)
        room = width - len(head) - title_width - 2
        text = fitted(hit.text, room) if room > 20 and not hit.reasons else ""
        lines.append(f"{head}{title}  {paint(text, '2', colour=colour)}".rstrip())
        lines += [_show_reason(reason, " " * (digits + 2), width, colour) for reason in hit.reasons]
    if mark_width:
        excluded = printable(listed(answer.excluded_words, "or"))
        lines.append(f"{BROKEN.strip()}: {excluded}, by the facts of the embedded countries")
    return lines


def _show_reason(reason: Reason, indent: str, width: int, colour: bool) -> str:
    """A clause that speaks for or against a result: a sign, the part of the query, and the clause.

    >>> reason = Reason("nuts", "denied", "contains no nuts", 0, 16, 0.8)
    >>> _show_reason(reason, "  ", 60, colour=False)
    '  + not nuts: contains no nuts'
    """
    sign, operator = ("+", "or") if reason.speaks_for else ("-", "not")
    part = fitted(reason.label, TITLE)
    clause = fitted(reason.clause, max(20, width - len(indent) - len(part) - 4))
    return f"{indent}{paint(sign, foreground(operator), colour=colour)} {part}: {paint(clause, '2', colour=colour)}"


def show_reading(reading: Query, colour: bool) -> str:
    """The query with what is excluded struck through, alternatives underlined and cues in their operator's colour.

    >>> from dataclasses import replace
    >>> from boolbert.search.query_reader import as_it_is
    >>> from boolbert.boolean.query import Word
    >>> words = (Word("films", 0, 5), Word("not", 6, 9, cue="not"), Word("westerns", 10, 18, excluded=True))
    >>> show_reading(replace(as_it_is("films not westerns"), words=words), colour=False)
    'films not [-westerns-]'
    >>> show_reading(Query("films\\nnot", words[:2], (), ("not",), "the model"), colour=False)
    'films not'
    """
    shown = (
        (printable(group.gap) or " " * bool(group.gap)) + _show_group(group, colour) for group in reading.word_groups
    )
    return "".join(shown) + printable(reading.rest)  # a line break is a space


def _show_group(group: WordGroup, colour: bool) -> str:
    text = printable(group.text)
    if not group.role:
        return text
    if not colour:
        opening, closing = SIGNS.get(group.role, ("", ""))
        return f"{opening}{text}{closing}"
    return paint(text, *(ROLES.get(group.role) or ("1", foreground(group.role))), colour=True)


def show_operators(operators: tuple[str, ...], colour: bool) -> str:
    return " ".join(paint(name.upper(), "1", foreground(name), colour=colour) for name in operators) or "none"


def show_explanation(explanation: Explanation, *, colour: bool | None = None) -> str:
    """How the query was read, what its vector is made of, then both rankings."""
    colour = has_colour() if colour is None else colour
    reading = explanation.reading
    rows = [("operators", f"{show_operators(reading.operators, colour)} (said by {reading.decided_by})")]
    if reading.cues:
        rows.append(("cues", ", ".join(f"{cue.operator.upper()} {listed([cue])}" for cue in reading.cues)))
    if reading.excluded:
        rows.append(("excluded", listed(reading.excluded)))
    if explanation.composition:
        rows.append(("vector", explanation.composition))
    rows += [("note", note) for note in explanation.notes]
    shown = [f"{label:<{LABEL}}{text if label == 'operators' else printable(text)}" for label, text in rows]
    return "\n".join([show_reading(reading, colour), "", *shown, "", *_results(explanation, colour)])


def _results(explanation: Explanation, colour: bool) -> list[str]:
    """Both rankings side by side, and how far each result moved."""
    before, after = explanation.before, explanation.after
    mark_width = len(BROKEN) if any(change.hit.violates for change in (*before, *after)) else 0
    name = printable(explanation.plain_name)
    lengths = [[len(_marked(change.hit, mark_width)) for change in changes] for changes in (before, after)]
    width, right_width = max([len(name), *lengths[0]]) + 3, max(lengths[1], default=0)
    lines = [paint(f"{'':4}{name:<{width}}Bool-BERT", "1", colour=colour)]
    for rank in range(max(len(before), len(after))):
        left = _cell(before, rank, mark_width, width, colour)
        right = _cell(after, rank, mark_width, right_width, colour)
        moved = after[rank].moved if rank < len(after) else ""
        codes = [] if not moved else ["32"] if moved[0] in "▲n" else ["31"]
        lines.append(f"{rank + 1:>2}  {left}{right}  {paint(moved, *codes, colour=colour)}".rstrip())
    counts = [explanation.violations(changes) for changes in (before, after)]
    for name, count in zip((explanation.plain_name, "Bool-BERT"), counts, strict=True):
        if count:
            lines.append(paint(printable(f"{name}: {count}"), foreground("not"), colour=colour))
    return [*lines, f"{explanation.in_both} of {len(after)} results are in both lists"]


def _cell(changes: Sequence[Change], rank: int, mark_width: int, width: int, colour: bool) -> str:
    if rank >= len(changes):
        return " " * width
    text = _marked(changes[rank].hit, mark_width).ljust(width)
    return paint(text, *_title_codes(changes[rank].hit)[1:], colour=colour)


def _marked(hit: Hit, mark_width: int) -> str:
    return f"{BROKEN if hit.violates else '':{mark_width}}{fitted(hit.title, TITLE)}"


def _title_codes(hit: Hit) -> tuple[str, ...]:
    return ("1", foreground("not")) if hit.violates else ("1",)
