"""An explanation as one HTML file that stands alone."""

from pathlib import Path

from boolbert.files import write_text
from boolbert.pages import render

from .explain import COLOURS, Explanation


def write_page(explanation: Explanation, path: str | Path) -> Path:
    path = Path(path)
    write_text(path, explanation_page(explanation))
    return path


def explanation_page(explanation: Explanation) -> str:
    """The query, its operators word by word, and both rankings."""
    warnings = []
    if not explanation.trained:
        warnings.append("The Boolean parts of this model are untrained: these values mean nothing yet.")
    if explanation.truncated:
        warnings.append("The query is longer than the model reads; its last words were cut off.")
    return render(
        "explanation.html",
        title=f"“{explanation.query}”",
        lead=f"Operators said by {explanation.decided_by}.",
        warnings=warnings,
        explanation=explanation,
        tints={operator: ", ".join(map(str, rgb)) for operator, rgb in COLOURS.items()},
    )
