"""Collections without something: "hotels with no pool", "flats that do not allow pets", "sugar-free desserts".

A verb that is negated excludes nothing in a question ("Which birds do not fly?"), and `read_parts` leaves it alone.
After a plural noun and without a question, the same words take some members from a set.
"""

import re

from .cues import CueSpan
from .kinds import is_question
from .parts import Part, Reading, read_parts

LONGEST_MATCHED = 500  # characters of a query; matching takes time that grows with the square of the length
_HAVE = r"(?:ha(?:ve|s)|(?:contain|include|need|use|require|allow|offer|feature|serve|provide|accept)s?|comes?\s+with)"
_HAVING = r"(?:having|containing|including|needing|using|requiring|allowing|offering|featuring|serving|providing)"
_NOT = r"(?:do(?:es)?\s+not|do(?:es)?n['’]t|can\s*not|can['’]t|never)"
_LACK = rf"""
    with\s+(?:no|zero) | {_HAVING}\s+no | not\s+(?:with|{_HAVING}|equipped\s+with|made\s+with)
    | free\s+(?:of|from) | sans | in\s+the\s+absence\s+of | (?:and\s+|but\s+)?no
    | where\s+there\s+(?:(?:is|are)\s+(?:no|not\s+any)|(?:isn|aren)['’]t(?:\s+any)?)
    | (?:that|which|who)\s+(?:
        {_NOT}(?:\s+{_HAVE})? | {_HAVE}\s+no | (?:comes?|do|does)\s+without | avoids? | omits? | skips? | lacks?
        | (?:are|is)\s+(?:free\s+(?:of|from)|not\s+(?:equipped|made)\s+with))
    | whose\s+\w+\s+(?:have|has)\s+no
"""
_LACKING = re.compile(
    rf"""\s*(?:(?:i\s+(?:want|need)|i['’]m\s+looking\s+for|looking\s+for|(?:find|show|give)(?:\s+me)?|list)\s+)?
    (?P<wanted>[^,;.:]*?\b\w*(?:[^\Wsu]s|men|people|children)|(?:an?|any|some)\s[^,;.:]+?),?\s+
    (?P<cue>{_LACK})\s+
    (?P<excluded>(?!(?:only|just|more|less|fewer|longer|later|earlier|better|other|matter|doubt|one|not|no|without)\b)
    \w[^,;.:]*?)[\s.]*\Z""",
    re.IGNORECASE | re.VERBOSE,
)


def read_lacking(text: str) -> Reading | None:
    """The parts of a query for a collection without something; None for every other text.

    >>> reading = read_lacking("snack bars with no nuts or milk")
    >>> [part.text for part in reading.wanted], [part.text for part in reading.excluded]
    (['snack bars'], ['nuts', 'milk'])
    >>> [part.text for part in read_lacking("sugar-free desserts").excluded]
    ['sugar']
    >>> read_lacking("Which birds do not fly?"), read_lacking("rooms with no more than two beds")
    (None, None)
    """
    if len(text) > LONGEST_MATCHED or is_question(text):
        return None
    match = _LACKING.fullmatch(text)
    if match is None:
        read = read_parts(text)
        rules = {cue.rule for cue in read.cues if cue.operator == "not" and cue.excludes}
        return read if rules == {"suffix"} else None
    (start, end), first = match.span("wanted"), match.start("excluded")
    listed = read_parts(text[first : match.end("excluded")])
    if listed.excluded or read_parts(text[start:end]).excluded:
        return None
    excluded = [part._replace(operator="not", start=part.start + first, end=part.end + first) for part in listed.parts]
    cue = CueSpan(*match.span("cue"), "not", match["cue"], excludes=True, rule="absence", kind="set")
    return Reading(text, (cue,), (Part("", start, end, text[start:end]), *excluded))
