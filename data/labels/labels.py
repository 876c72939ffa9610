"""From spans to token labels: the targets of the cue predictor and of the scope predictor."""

from collections.abc import Iterable, Mapping, Sequence

from ...boolean.operators import OPERATORS
from .cues import CueSpan, find_cues
from .parts import Span, read_parts


def cue_labels(text: str, offsets: Iterable[Sequence[int]], cues: Iterable[CueSpan] | None = None) -> list[list[int]]:
    """0/1 labels of shape (3, length), a row for each of `OPERATORS`: 1 where a token lies in a cue of that operator.

    `offsets` are a fast tokenizer's character offsets, one pair per token; special and padding tokens have (0, 0) and
    get 0, and a cue behind the last offset (truncation) is left out. Without `cues`, the text's own are taken, the
    weak ones left out.

    >>> cue_labels("cats not dogs", [(0, 0), (0, 4), (5, 8), (9, 13), (0, 0)])
    [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0]]
    """
    chosen = [cue for cue in find_cues(text) if not cue.weak] if cues is None else list(cues)
    return _labels(offsets, {name: [cue[:2] for cue in chosen if cue.operator == name] for name in OPERATORS})


def scope_labels(
    text: str, offsets: Iterable[Sequence[int]], scopes: Mapping[str, Sequence[Span]] | None = None
) -> list[list[int]]:
    """0/1 labels of shape (3, length), a row for each of `OPERATORS`: 1 where the operator reaches the token.

    NOT reaches the words that it excludes, OR its alternatives, AND the parts that it joins; never a cue, nor the
    signs at a part's edges. `offsets` are as for `cue_labels`. `scopes` has the spans of each operator that reaches
    something; without it the text is read.

    >>> scope_labels("cats not dogs", [(0, 0), (0, 4), (5, 8), (9, 13), (0, 0)])
    [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    """
    if scopes is None:
        reading = read_parts(text)
        scopes = {operator: reading.scopes(operator) for operator in OPERATORS}
    return _labels(offsets, scopes)


def _labels(offsets: Iterable[Sequence[int]], spans: Mapping[str, Sequence[Span]]) -> list[list[int]]:
    """1 where a token has a character in one of an operator's spans."""
    tokens = [(int(start), int(end)) for start, end in offsets]
    return [
        [int(any(start < right and end > left for left, right in spans.get(operator, ()))) for start, end in tokens]
        for operator in OPERATORS
    ]
