"""The page's parts as HTML: a query as it was read, and two rankings side by side. All text in them is escaped."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from boolbert.boolean import OPERATORS
from boolbert.core.pages import render
from boolbert.search import Explanation, Query
from boolbert.search.answer import Hit
from boolbert.search.explanation import Change
from boolbert.search.reasons import Reason

_TEMPLATES = Path(__file__).parent.parent / "core" / "templates"
CSS, CLICKS = ((_TEMPLATES / name).read_text(encoding="utf-8") for name in ("serve.css", "serve.js"))
HEAD = """<div class="bb-head"><h1>Bool-BERT</h1>
<p>Search that obeys AND, OR and NOT, beside the same encoder without it.</p></div>"""


def error_html(message: str) -> str:
    return render("serve.html", part="error", message=message)


def examples_html(examples: Sequence[str]) -> str:
    return render("serve.html", part="examples", examples=examples)


def reading_html(explanation: Explanation, by_hand: bool = False) -> str:
    """The query word by word: excluded words struck through, alternatives in a box, cues underlined, each a button."""
    reading = explanation.reading
    given = {"word_groups": _word_groups(reading), "rest": reading.rest, "notes": explanation.notes}
    return render("serve.html", part="reading", by_hand=by_hand, **given)


def results_html(explanation: Explanation) -> str:
    """Both rankings side by side, with a mark at what the query excludes."""
    plain = "the same encoder, operators off" if explanation.plain_name == "plain encoder" else explanation.plain_name
    columns = [
        _column("Plain encoder", plain, explanation.before),
        _column("Bool-BERT", _obeyed(explanation), explanation.after, shows_moves=True),
    ]
    return render("serve.html", part="results", columns=columns, composition=explanation.composition)


def _column(name: str, about: str, changes: Sequence[Change], *, shows_moves: bool = False) -> dict[str, Any]:
    """A ranking; `broken` is how many of it the query excludes, None where that is not known."""
    marks = [change.hit.violates for change in changes]
    broken = None if not marks or None in marks else sum(map(bool, marks))
    reasons = [deciding(change.hit) for change in changes]
    shown = [(one, why, line_of(one.hit, why.clause if why else "")) for one, why in zip(changes, reasons, strict=True)]
    return {"name": name, "about": about, "shown": shown, "shows_moves": shows_moves, "broken": broken}


def deciding(hit: Hit) -> Reason | None:
    """The clause that tells most about a result: one that speaks against it, one that denies what is excluded, or else
    the one that is nearest to what is wanted."""
    order = {"against": 0, "denied": 1, "for": 2}
    return min(hit.reasons, key=lambda reason: (order[reason.says], -reason.confidence), default=None)


def line_of(hit: Hit, clause: str = "") -> str:
    """What a result's text says behind its title, and behind the clause that is shown already, where it begins so.

    >>> line_of(Hit(1, 0.5, 0, "Tent 004", "Tent 004 (colour: red). A tent for two.", 0.5))
    '(colour: red). A tent for two.'
    >>> line_of(Hit(1, 0.5, 0, "Fiji", "Fiji is an island. It has a king.", 0.5), "Fiji is an island.")
    'It has a king.'
    """
    text = hit.text.strip()
    rest = text.removeprefix(hit.title)
    if rest.lstrip(" ")[:1] in tuple(".:(\n"):  # else the title is the sentence's first word
        text = rest.lstrip(" .:\n") or text
    return text.removeprefix(clause).lstrip() or text


def _obeyed(explanation: Explanation) -> str:
    names = " and ".join(name.upper() for name in explanation.reading.operators)
    return f"obeys {names}" if names else "no operator is on"


def _word_groups(reading: Query) -> list[dict[str, Any]]:
    """The groups of words, each word with its number and what stands before it in its group."""
    groups, numbers = [], count()
    for group in reading.word_groups:
        is_cue = group.role in OPERATORS
        ends = [group.words[0].start, *(word.end for word in group.words)]
        gaps = (reading.text[end : word.start] for end, word in zip(ends, group.words, strict=False))
        words = [
            {"gap": gap, "number": next(numbers), "text": word.text, "excluded": word.excluded}
            for gap, word in zip(gaps, group.words, strict=True)
        ]
        role, label = (f"cue {group.role}", group.role.upper()) if is_cue else (group.role, "")
        groups.append({"role": role, "label": label, "gap": group.gap, "words": words})
    return groups
