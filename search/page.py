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
        tints={operator: ", ".join(map(str, rgb)) for operator, rgb in COLOURS.items()},
    )
