"""An explanation as one HTML file that stands alone."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from boolbert.eval.page import page

from .explain import Change, Explanation, OperatorReading

RGB = {"and": "0, 114, 178", "or": "0, 158, 115", "not": "213, 94, 0"}
STYLE = """<style>
.gates { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; margin: 0 0 1rem; list-style: none; }
.gates li { border: 2px solid var(--line); border-radius: .5rem; padding: .35rem .8rem; color: var(--soft); }
.gates li.on { border-color: rgb(var(--tint)); color: var(--ink); }
.words { font-size: 1rem; }
.words th, .words td { text-align: center; padding: .45rem .6rem; }
.words th:first-child, .words td:first-child { text-align: left; min-width: 0; }
.words td.off { color: var(--soft); }
.words .cue { outline: 3px solid rgb(var(--tint)); outline-offset: -3px; border-radius: .3rem; font-weight: 700; }
.words th.cue { color: rgb(var(--tint)); }
.words small { display: block; font-size: .7rem; opacity: .75; }
.up { color: var(--good); } .down { color: var(--bad); }
.warning { border-left: 4px solid var(--bad); padding: .4rem .8rem; background: var(--card); }
</style>"""


def write_page(explanation: Explanation, path: str | Path) -> Path:
    path = Path(path)
    path.write_text(explanation_page(explanation), encoding="utf-8")
    return path


def explanation_page(explanation: Explanation) -> str:
    """The query, its operators word by word, and both rankings."""
    warning = ""
    if not explanation.trained:
        warning = '<p class="warning">The Boolean parts of this model are untrained: these values mean nothing yet.</p>'
    if explanation.truncated:
        warning += '<p class="warning">The query is longer than the model reads; its last words were cut off.</p>'
    sections = [
        f"{STYLE}{warning}<section><h2>Operators</h2>{gates(explanation)}</section>",
        f"<section><h2>Word by word</h2>{words(explanation)}</section>",
        f"<section><h2>Results</h2>{results(explanation)}</section>",
    ]
    return page(f"“{explanation.query}”", f"Operators said by {explanation.decided_by}.", sections)


def gates(explanation: Explanation) -> str:
    items = "".join(
        f'<li class="{"on" if reading.on else ""}" style="--tint: {RGB[reading.operator]}">'
        f"<b>{reading.operator.upper()}</b> {'on' if reading.on else 'off'} <small>gate {reading.gate:.2f}</small></li>"
        for reading in explanation.readings
    )
    return f'<ul class="gates">{items}</ul>'


def words(explanation: Explanation) -> str:
    rows = "".join(f"<tr>{''.join(cells(explanation, reading))}</tr>" for reading in explanation.readings)
    notes = (
        "Shade and number: what attention to the word gains (AND, OR) or loses (NOT), mean over heads and layers.",
        "Below it: the share of heads and layers that reach the word. Outlined: the operator's cues.",
        f"The strongest shade stands for {explanation.number(explanation.strongest)}.",
    )
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    head = "".join(headings(explanation))
    return (
        f'<div class="scroll"><table class="words"><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>'
        f'</div><ul class="notes">{listed}</ul>'
    )


def headings(explanation: Explanation) -> Iterator[str]:
    for place, word in enumerate(explanation.words):
        cued = explanation.cue_operator(place)
        mark = f' class="cue" style="--tint: {RGB[cued]}"' if cued else ""
        yield f"<th{mark}>{escape(word.text)}</th>"


def cells(explanation: Explanation, reading: OperatorReading) -> Iterator[str]:
    """A row of the table: the operator, then a cell for each word."""
    yield f"<td><b>{reading.operator.upper()}</b></td>"
    strongest = explanation.strongest or 1.0
    sign = "−" if reading.operator == "not" else "+"
    tint = RGB[reading.operator]
    for place, value in enumerate(reading.strength):
        mark = " cue" if reading.cues[place] else ""
        hint = f"cue probability {reading.cue_probabilities[place]:.2f}"
        if not reading.on:
            yield f'<td class="off{mark}" style="--tint: {tint}" title="{hint}">·</td>'
            continue
        share = min(value / strongest, 1.0)
        ink = "; color: #fff" if share > 0.6 else ""
        yield (
            f'<td class="{mark.strip()}" style="--tint: {tint}; background: rgba({tint}, {share:.3f}){ink}" '
            f'title="{hint}">{sign}{explanation.number(value)}<small>{reading.scope[place]:.0%}</small></td>'
        )


def results(explanation: Explanation) -> str:
    found = "".join(f"<li>{escape(change.title)} {moved(change)}</li>" for change in explanation.changes)
    count = len(explanation.answer)
    plain = "".join(f"<li>{escape(hit.title)}</li>" for hit in explanation.plain.hits[:count])
    return (
        f'<div class="lists"><div><h4>With operators</h4><ol>{found}</ol></div>'
        f"<div><h4>{escape(explanation.plain_name.capitalize())}</h4><ol>{plain}</ol></div></div>"
    )


def moved(change: Change) -> str:
    """
    >>> moved(Change("Chad", 1, 4)), moved(Change("Chad", 2, 2))
    ('<span class="up">▲3</span>', '')
    """
    if change.before is None:
        return '<span class="up">new</span>'
    up = change.before - change.rank
    if not up:
        return ""
    return f'<span class="{"up" if up > 0 else "down"}">{"▲" if up > 0 else "▼"}{abs(up)}</span>'
