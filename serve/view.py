"""The page as HTML: a query as it was read, and two rankings. All text in it is escaped."""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path
from typing import Any

from boolbert.boolean import OPERATORS
from boolbert.boolean.query import listed
from boolbert.core.pages import render
from boolbert.search import Explanation, Query
from boolbert.search.answer import Hit
from boolbert.search.explanation import Change
from boolbert.search.reasons import Reason

from .asked import RESULTS, Asked
from .engine import LONGEST_SERVED_QUERY, MOST, Collection

SHOWN = 800  # letters of a result's text
SCRIPT = (Path(__file__).parent.parent / "core" / "templates" / "serve.js").read_text(encoding="utf-8")
_FLAGS = re.compile(r"; --[^.;]*")  # what the command line has for it
_NUMBERED = re.compile(r" \[[^\]]*\]$")  # what tells documents of one title apart
_GAP = re.compile(r" +([,;])")
# The browser runs the page's own script and no other, whatever a document says.
POLICY = (
    "default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'unsafe-inline'; form-action 'self'; "
    f"base-uri 'none'; script-src 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
)


def page_html(
    asked: Asked,
    collection: Collection | None = None,
    examples: Sequence[str] = (),
    *,
    found: Explanation | None = None,
    seconds: float = 0.0,
    error: str = "",
) -> str:
    """The whole page. found: the answer to what is asked, and how long it took; error: why there is none."""
    return render(
        "serve.html",
        asked=asked,
        collection=collection,
        examples=[(text, Asked(text).link()) for text in examples],
        longest=LONGEST_SERVED_QUERY,
        answer=found and _answer(asked, collection, found, seconds),
        script=SCRIPT,
        error=error,
        said=error or (_said(found) if found else ""),
    )


def _answer(asked: Asked, collection: Collection | None, found: Explanation, seconds: float) -> dict[str, Any]:
    reading = found.reading
    takes_words = collection is None or collection.takes_words
    plain = (
        "by an encoder that does not know AND, OR and NOT" if found.plain_name == "plain encoder" else found.plain_name
    )
    nothing = all(word.excluded for word in reading.words if word.text.isalnum())  # is left to search for
    columns = [
        _column("ours", "Bool-BERT", found.violations(found.after) or _obeyed(found), found.after),
        _column("plain", "Plain search", found.violations(found.before) or plain, found.before),
    ]
    k = min(asked.k + RESULTS, MOST) if len(found.after) == asked.k < MOST else 0
    return {
        "word_groups": _word_groups(reading, takes_words),
        "rest": reading.rest,
        "takes_words": takes_words,
        "by_hand": asked.excluded is not None,
        "as_read": asked.link(excluded=None),
        "filters": list(_filters(asked, found)),
        "notes": [_FLAGS.sub("", note) for note in _without_filters(found).notes],
        "columns": [] if nothing else columns,
        "composition": found.composition,
        "strength": found.not_weight,
        "as_learned": asked.link(strength=None) if found.not_weight is not None and asked.strength is not None else "",
        "seconds": seconds,
        "more": k and (asked.link(k=k), asked.k + 1),
    }


def _without_filters(found: Explanation) -> Explanation:
    return replace(found, numbers=found.numbers._replace(filters=()))


def _filters(asked: Asked, found: Explanation) -> Iterator[tuple[str, str, str]]:
    """The filters that were read from the query: what each asks for, its words, and the page without them."""
    for words, own in groupby(found.numbers.filters, lambda one: one.words):
        asks = " and ".join(one.where for one in own).replace("<=", "≤").replace(">=", "≥")
        left = _GAP.sub(r"\1", " ".join(found.reading.text.replace(words, " ", 1).split())).strip(" ,;")
        yield asks, words, asked.link(query=left, excluded=None, k=RESULTS) if left else ""


def _said(found: Explanation) -> str:
    """What a screen reader says of an answer."""
    count, excluded = len(found.after), listed(found.reading.excluded, "or")
    return f"{count} result{'s' * (count != 1)}{f', {excluded} excluded' if excluded else ''}"


def _column(id: str, name: str, about: str, changes: Sequence[Change]) -> dict[str, Any]:
    """A ranking, each result with the clause that decided and a line of its text."""
    shown = []
    for change in changes:
        hit, why = change.hit, deciding(change.hit)
        line = line_of(hit, why.clause if why else "")
        shown.append({"change": change, "why": why, "line": line, "fields": _fields(hit), "text": marked(hit)})
    return {"id": id, "name": name, "about": about, "shown": shown}


def deciding(hit: Hit) -> Reason | None:
    """The clause that tells most about a result: one that speaks against it, one that denies what is excluded, or else
    the one that is nearest to what is wanted."""
    order = {"against": 0, "denied": 1, "for": 2}
    return min(hit.reasons, key=lambda reason: (order[reason.says], -reason.confidence), default=None)


def line_of(hit: Hit, clause: str = "") -> str:
    """What a result's text says beside its title and the clause that is shown already.

    >>> line_of(Hit(1, 0.5, 0, "Tent 004", "Tent 004 (colour: red). A tent for two.", 0.5))
    '(colour: red). A tent for two.'
    >>> line_of(Hit(1, 0.5, 0, "Fiji", "Fiji is an island. It has a king. It is warm.", 0.5), "It has a king.")
    'Fiji is an island. … It is warm.'
    >>> line_of(Hit(1, 0.5, 0, "Fiji", "A monarchy, Fiji has a king.", 0.5), "A monarchy")
    'Fiji has a king.'
    """
    text = hit.text.strip()
    rest = text.removeprefix(_NUMBERED.sub("", hit.title))
    if rest.lstrip(" ")[:1] in tuple(".:(\n"):  # else the title is the sentence's first word
        text = rest.lstrip(" .:\n") or text
    pieces = text.split(clause, 1) if clause else [text]
    pieces = [pieces[0].strip(), *(piece.lstrip(" ,;:.\n").rstrip() for piece in pieces[1:])]
    return " … ".join(piece for piece in pieces if piece.strip("."))


def marked(hit: Hit) -> list[tuple[str, str]]:
    """A result's text in pieces, each with what it says of the query: "for", "against", "denied" or nothing.

    >>> said = (Reason("pool", "denied", "No pool.", 7, 15, 0.9),)
    >>> marked(Hit(1, 0.5, 0, "Inn", "Inn 7. No pool. A bar.", 0.5, reasons=said))
    [('Inn 7. ', ''), ('No pool.', 'denied'), (' A bar.', '')]
    """
    pieces, end = [], 0
    text = re.sub(r"\s", " ", hit.text[:SHOWN])
    for one in sorted(hit.reasons, key=lambda reason: reason.start):
        if one.start >= end and one.start < len(text):
            pieces += [(text[end : one.start], ""), (text[one.start : one.end], one.says)]
            end = one.end
    return [*pieces, (text[end:] + " …" * (len(hit.text) > SHOWN), "")]


def _fields(hit: Hit) -> str:
    """What a result has in its columns.

    >>> _fields(Hit(1, 0.5, 0, "Inn", "", 0.5, fields={"price": 45.0, "tags": ["bar", "lake"], "city": None}))
    'price 45 · tags bar, lake'
    """
    found = []
    for name, value in hit.fields.items():
        values = value if isinstance(value, list | tuple) else [value]
        shown = ", ".join(
            f"{one:.12g}" if isinstance(one, float) else str(one) for one in values if one not in (None, "")
        )
        found += [f"{name} {shown}"] if shown else []
    return " · ".join(found)


def _obeyed(explanation: Explanation) -> str:
    names = " and ".join(name.upper() for name in explanation.reading.operators)
    if names:
        return f"obeys {names}"
    has_evidence = any(change.hit.reasons for change in explanation.after)
    return "what documents say counts too" if has_evidence else "no AND, OR or NOT in the query"


def _word_groups(reading: Query, takes_words: bool) -> list[dict[str, Any]]:
    """The groups of words, each word with its number and what stands before it in its group."""
    groups, numbers = [], count()
    for group in reading.word_groups:
        is_cue = group.role in OPERATORS
        ends = [group.words[0].start, *(word.end for word in group.words)]
        gaps = (reading.text[end : word.start] for end, word in zip(ends, group.words, strict=False))
        words = [
            {
                "gap": gap,
                "number": next(numbers),
                "text": word.text,
                "excluded": word.excluded,
                "is_clickable": takes_words and any(map(str.isalnum, word.text)),
            }
            for gap, word in zip(gaps, group.words, strict=True)
        ]
        role, label = (f"cue {group.role}", group.role.upper()) if is_cue else (group.role, "")
        groups.append({"role": role, "label": label, "gap": group.gap, "words": words})
    return groups
