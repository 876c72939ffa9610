"""An explanation as one HTML file that stands alone."""

from pathlib import Path

from boolbert.core.files import write_text
from boolbert.core.pages import render

from .explanation import Explanation
from .reading import COLOURS


def write_page(explanation: Explanation, path: str | Path) -> Path:
    path = Path(path)
    write_text(path, explanation_page(explanation))
    return path


def explanation_page(explanation: Explanation) -> str:
    """The query as it was read, what its vector is made of, both rankings, and attention word by word."""
    reading = explanation.reading
    operators = ", ".join(name.upper() for name in explanation.operators) or "none"
    return render(
        "explanation.html",
        title=f"“{reading.query}”",
        lead=f"Operators: {operators}, said by {reading.decided_by}.",
        explanation=explanation,
        reading=reading,
        pieces=_pieces(explanation),
        tints={operator: ", ".join(map(str, rgb)) for operator, rgb in COLOURS.items()},
    )


def _pieces(explanation: Explanation) -> list[tuple[str, str]]:
    """The whole query in pieces, each with its role, "" for none."""
    query, pieces, end = explanation.query, [], 0
    for run in explanation.reading.runs:
        start = run.words[0].start
        pieces += [("", query[end:start]), (run.role, run.text)]
        end = run.words[-1].end
    return [*pieces, ("", query[end:])]
