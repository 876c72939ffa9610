"""The page's parts as HTML: a query as it was read, and two rankings side by side. All text in them is escaped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boolbert.core.pages import render
from boolbert.search import Explanation, QueryReading
from boolbert.search.explanation import Change

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
    runs, rest = _runs(reading)
    return render("serve.html", part="reading", runs=runs, rest=rest, by_hand=by_hand, notes=explanation.notes)


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
    return {"name": name, "about": about, "changes": changes, "shows_moves": shows_moves, "broken": broken}


def _obeyed(explanation: Explanation) -> str:
    names = " and ".join(name.upper() for name in explanation.operators)
    return f"obeys {names}" if names else "no operator is on"


def _runs(reading: QueryReading) -> tuple[list[dict[str, Any]], str]:
    """The runs of words of one role with what stands between them, and what is left of the query behind them."""
    runs, end, number = [], 0, 0
    for run in reading.runs:
        is_cue = run.role in ("and", "or", "not")
        shown: dict[str, Any] = {
            "role": f"cue {run.role}" if is_cue else run.role,
            "label": run.role.upper() if is_cue else "",
            "gap": reading.query[end : run.words[0].start],
            "words": [],
        }
        end = run.words[0].start
        for word in run.words:
            gap = reading.query[end : word.start]
            shown["words"].append({"gap": gap, "number": number, "text": word.text, "excluded": word.excluded})
            end, number = word.end, number + 1
        runs.append(shown)
    return runs, reading.query[end:]
