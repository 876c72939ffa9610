"""Answers as text for a terminal."""

import shutil
import textwrap

from boolbert.search.searcher import Answer

from .colours import foreground, has_colour, paint


def show_answer(answer: Answer, *, colour: bool | None = None, width: int | None = None) -> str:
    """The operators, then a line for each hit: rank, score, title and the beginning of its text."""
    colour = has_colour() if colour is None else colour
    width = width or shutil.get_terminal_size((100, 24)).columns
    lines = [f"operators: {show_operators(answer.operators, colour)} (said by {answer.decided_by})", ""]
    places = len(str(len(answer)))
    title_width = min(max((len(hit.title) for hit in answer), default=0), 34)
    for hit in answer:
        head = f"{hit.rank:>{places}}  {hit.score:6.3f}  "
        title = textwrap.shorten(hit.title, title_width, placeholder="...")
        room = width - len(head) - title_width - 2
        text = textwrap.shorten(hit.text, room, placeholder=" ...") if room > 20 else ""
        padded = paint(title.ljust(title_width), "1", colour=colour)
        lines.append(f"{head}{padded}  {paint(text, '2', colour=colour)}".rstrip())
    return "\n".join(lines)


def show_operators(operators: tuple[str, ...], colour: bool) -> str:
    return " ".join(paint(name.upper(), "1", foreground(name), colour=colour) for name in operators) or "none"
