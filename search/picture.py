"""An explanation as a picture: a row for each operator, a column for each word, shaded by strength, cues outlined."""

import textwrap
from pathlib import Path
from typing import Any

from boolbert.errors import BoolBertError, optional
from boolbert.files import whole_file
from boolbert.terminal import fitted

from .explain import COLOURS, Explanation, OperatorReading

LONGEST = 40  # letters of a word; what is longer is cut
LABEL, TOP, HEAD, ROW, GAP, LINE = 1.55, 0.55, 0.42, 0.56, 0.2, 10.5  # inches
TINTS = {operator: f"#{bytes(rgb).hex()}" for operator, rgb in COLOURS.items()}


def write_picture(explanation: Explanation, path: str | Path) -> Path:
    """Write a PNG, or what the file's ending says (.svg, .pdf)."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".") or "png"
    figure = draw(explanation)
    if kind not in figure.canvas.get_supported_filetypes():
        raise BoolBertError(f"{path}: pictures of this kind cannot be drawn; try a name that ends in .png")
    with whole_file(path) as aside:
        figure.savefig(aside, format=kind, dpi=160, metadata={"Software": None} if kind == "png" else None)
    return path


def draw(explanation: Explanation) -> Any:
    """The matplotlib figure; long queries are broken into several lines."""
    matplotlib = optional("matplotlib", "matplotlib", "plot")
    matplotlib.use("Agg")
    with matplotlib.rc_context({"text.parse_math": False, "text.usetex": False}):  # a "$" in a query is a dollar
        return _figure(explanation)


def _figure(explanation: Explanation) -> Any:
    from matplotlib.figure import Figure

    words = [fitted(word.text, LONGEST) for word in explanation.words]
    widths = [max(0.56, 0.35 + 0.105 * len(word)) for word in words]
    lines = broken(widths, LINE)
    block = HEAD + ROW * len(explanation.readings) + GAP
    width = LABEL + max(6.0, *(sum(widths[word] for word in line) for line in lines)) + 0.25
    foot = textwrap.wrap(caption(explanation), int(width * 14))
    size = (width, TOP + block * len(lines) + 0.17 * len(foot) + 0.1)
    figure = Figure(figsize=size)
    figure.set_layout_engine("none")
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0))  # inches, from the top
    axes.axis("off")
    heading = f"“{fitted(explanation.query, int(size[0] * 9))}”"
    axes.text(0.2, 0.3, heading, fontsize=12, fontweight="bold", va="center")
    for number, line in enumerate(lines):
        _draw_line(axes, explanation, line, widths, TOP + block * number)
    text = "\n".join(foot)
    axes.text(0.2, TOP + block * len(lines), text, fontsize=8, color="#555555", va="top", linespacing=1.35)
    return figure


def broken(widths: list[float], most: float) -> list[list[int]]:
    """The numbers of the words on each line.

    >>> broken([2.0, 2.0, 3.0, 1.0], most=5.0)
    [[0, 1], [2, 3]]
    """
    lines: list[list[int]] = [[]]
    for word, width in enumerate(widths):
        if lines[-1] and sum(widths[other] for other in lines[-1]) + width > most:
            lines.append([])
        lines[-1].append(word)
    return lines


def caption(explanation: Explanation) -> str:
    text = (
        "Shade and number: what attention to the word gains (AND, OR) or loses (NOT), mean over heads and layers. "
        f"Outlined: cues. Operators said by {explanation.decided_by}."
    )
    return text if explanation.trained else f"UNTRAINED Boolean parts: these values mean nothing yet. {text}"


def _draw_line(axes: Any, explanation: Explanation, line: list[int], widths: list[float], top: float) -> None:
    """The words of a line, and below each of them a box for every operator."""
    x = LABEL
    for word in line:
        cued = explanation.cue_operator(word)
        style = {"color": TINTS[cued], "fontweight": "bold"} if cued else {"color": "#222222"}
        middle = x + widths[word] / 2
        text = fitted(explanation.words[word].text, LONGEST)
        axes.text(middle, top + HEAD - 0.12, text, ha="center", fontsize=11, **style)
        for number, reading in enumerate(explanation.readings):
            _draw_box(axes, explanation, reading, word, x, top + HEAD + ROW * number, widths[word])
        x += widths[word]
    for number, reading in enumerate(explanation.readings):
        y = top + HEAD + ROW * number
        colour = TINTS[reading.operator] if reading.on else "#9a9a9a"
        axes.text(0.2, y + 0.2, reading.operator.upper(), fontsize=12, fontweight="bold", color=colour, va="center")
        axes.text(0.78, y + 0.2, "on" if reading.on else "off", fontsize=10, color=colour, va="center")
        axes.text(0.2, y + 0.41, f"gate {reading.gate:.2f}", fontsize=8, color="#666666", va="center")


def _draw_box(
    axes: Any, explanation: Explanation, reading: OperatorReading, word: int, x: float, y: float, width: float
) -> None:
    from matplotlib.patches import Rectangle

    value = reading.strength[word]
    share = min(value / (explanation.strongest or 1.0), 1.0) if reading.on else 0.0
    colour = TINTS[reading.operator]
    box = (x + 0.03, y + 0.03), width - 0.06, ROW - 0.06
    axes.add_patch(Rectangle(*box, facecolor=colour, alpha=share, linewidth=0))
    axes.add_patch(Rectangle(*box, fill=False, edgecolor="#dddddd", linewidth=0.6))
    if reading.on:
        text = ("−" if reading.operator == "not" else "+") + explanation.number(value)
        ink = "white" if share > 0.6 else "#333333"
        axes.text(x + width / 2, y + ROW / 2, text, fontsize=8, color=ink, ha="center", va="center")
    if reading.cues[word]:
        axes.add_patch(Rectangle(*box, fill=False, edgecolor="black", linewidth=2.4))
