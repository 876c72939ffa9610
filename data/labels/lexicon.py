"""The cues of a language, read from its table: `cues_en.tsv`, which says what its columns mean.

Finding cues, deciding what they exclude, replacing them by synonyms and writing sentences take them from here. A new
cue is a new line of the table.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from ...boolean.operators import OPERATORS
from ...boolean.word_lists import FIXED
from ...core.errors import BoolBertError

ENGLISH = "en"
KINDS = ("topic", "set", "property")
# What decides whether a NOT cue excludes; `excludes` in exclusion.py has a case for each.
NOT_RULES = (
    *("always", "beyond", "contrast", "absence", "having", "command", "relative", "neither", "nor", "prefix"),
    *("please", "anything", "place", "suffix", "listed", "negation", "none", "request"),
)
RULES = (*NOT_RULES, "join", "weak", "wording")
_FOLDER = Path(__file__).parent


class Cue(NamedTuple):
    """A line of the table. `written`: the lists of wordings that it stands in, with its place in each."""

    phrase: str
    operator: str | None
    kind: str | None
    rule: str = "join"
    written: tuple[tuple[str, int], ...] = ()

    @property
    def weak(self) -> bool:
        """Whether it implies its operator in some sentences only."""
        return self.rule in ("weak", "suffix")


class CueTable(NamedTuple):
    """The cues of one language, by their phrases, and the wordings that are written but not looked for."""

    cues: dict[str, Cue]
    wordings: tuple[Cue, ...]

    def phrases(self, rule: str) -> tuple[str, ...]:
        """The cues of a rule."""
        return tuple(cue.phrase for cue in self.cues.values() if cue.rule == rule)

    def written(self, name: str) -> tuple[str, ...]:
        """A list of wordings, in its order.

        >>> cue_table().written("or")
        ('or', 'and/or')
        """
        places = {cue.phrase: dict(cue.written).get(name) for cue in (*self.cues.values(), *self.wordings)}
        listed = {phrase: place for phrase, place in places.items() if place is not None}
        return tuple(sorted(listed, key=listed.__getitem__))


@cache
def cue_table(language: str = ENGLISH) -> CueTable:
    """The cues of a language.

    >>> cue = cue_table("en").cues["but not"]
    >>> cue.operator, cue.kind, cue.rule
    ('not', 'set', 'contrast')
    """
    languages = sorted(path.stem.removeprefix("cues_") for path in _FOLDER.glob("cues_*.tsv"))
    if language not in languages:
        known = ", ".join(languages)
        raise BoolBertError(f"language must be one of {known}, got {language!r}: it has no table of cues")
    return read_table(_FOLDER / f"cues_{language}.tsv")


def read_table(path: Path) -> CueTable:
    """The lexicon of a file; a line that cannot be right is an error that names it."""
    cues: dict[str, Cue] = {}
    wordings = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            cue = _cue(line)
            if cue.phrase in cues:
                raise ValueError(f"{cue.phrase!r} stands there twice")
            if cue.phrase != cue.phrase.lower():
                raise ValueError(f"{cue.phrase!r} is found in small letters alone; write {cue.phrase.lower()!r}")
        except ValueError as error:
            raise BoolBertError(f"{path}, line {number}: {error}") from None
        if cue.rule == "wording":
            wordings.append(cue)
        else:
            cues[cue.phrase] = cue
    return CueTable(cues | {phrase: Cue(phrase, None, None, "fixed") for phrase in FIXED}, tuple(wordings))


def _cue(line: str) -> Cue:
    """
    >>> _cue("save for\\tnot\\ttopic\\talways\\tend:3 front")
    Cue(phrase='save for', operator='not', kind='topic', rule='always', written=(('end', 3), ('front', 1000)))
    """
    columns = line.split("\t")
    if not 4 <= len(columns) <= 5:
        raise ValueError(f"a line has 4 or 5 columns with a tab between them, this one has {len(columns)}")
    phrase, operator, kind, rule = columns[:4]
    if operator not in OPERATORS:
        raise ValueError(f"operator must be one of {', '.join(OPERATORS)}, got {operator!r}")
    if kind not in (*KINDS, "-") or (operator == "not") > (kind != "-"):
        raise ValueError(f"kind must be one of {', '.join(KINDS)} for NOT, or - for the others, got {kind!r}")
    if rule not in RULES or (operator == "not" and rule == "join"):
        raise ValueError(f"rule {rule!r} does not fit operator {operator!r}; the rules are {', '.join(RULES)}")
    places = [mark.partition(":") for mark in (columns[4].split() if len(columns) > 4 else ())]
    written = tuple((name, int(place or 1000)) for name, _, place in places)  # those without a place come last
    return Cue(phrase, operator, None if kind == "-" else kind, rule, written)
