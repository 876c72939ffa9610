"""Collections without something: "hotels with no pool", "flats that do not allow pets".

A verb that is negated excludes nothing in a question ("Which birds do not fly?"), and `read_parts` leaves it alone.
After a plural noun and without a question, the same words take some members from a set.
"""

import re

from .cues import CueSpan
from .kinds import is_question
from .parts import Part, Reading, read_parts

_LACKING = re.compile(
    r"\s*(?P<wanted>[^,;.:]*?\b\w*(?:[^\Wsu]s|men|people|children))\s+"
    r"(?P<cue>with\s+no|(?:that|which|who)\s+(?:do\s+not|don['’]t)"
    r"(?:\s+(?:have|contain|include|need|use|require|allow|offer|come\s+with))?)\s+"
    r"(?P<excluded>(?!only\b|just\b|more\b|less\b|fewer\b)\w[^,;.:]*?)\s*\Z",
    re.IGNORECASE,
)


def read_lacking(text: str) -> Reading | None:
    """The parts of a query for a collection without something; None for every other text.

    >>> reading = read_lacking("snack bars with no nuts or milk")
    >>> [part.text for part in reading.wanted], [part.text for part in reading.excluded]
    (['snack bars'], ['nuts', 'milk'])
    >>> read_lacking("Which birds do not fly?"), read_lacking("rooms with no more than two beds")
    (None, None)
    """
    match = None if is_question(text) else _LACKING.fullmatch(text)
    if match is None:
        return None
    (start, end), first = match.span("wanted"), match.start("excluded")
    listed = read_parts(text[first : match.end("excluded")])
    if listed.excluded or read_parts(text[start:end]).excluded:
        return None
    excluded = [part._replace(operator="not", start=part.start + first, end=part.end + first) for part in listed.parts]
    cue = CueSpan(*match.span("cue"), "not", match["cue"], excludes=True, rule="absence", kind="set")
    return Reading(text, (cue,), (Part("", start, end, text[start:end]), *excluded))
