"""An explanation as a picture: a row for each operator, a column for each word, shaded by strength, cues outlined."""

import textwrap
from pathlib import Path
from typing import Any

from boolbert.eval.errors import optional

from .explain import Explanation

COLOURS = {"and": "#0072b2", "or": "#009e73", "not": "#d55e00"}


def write_picture(explanation: Explanation, path: str | Path) -> Path:
    """Write a PNG, or what the file's ending says (.svg, .pdf)."""
    path = Path(path)
    figure = draw(explanation)
    try:
        figure.savefig(path, dpi=160, metadata={"Software": None} if path.suffix == ".png" else None)
    except ValueError as error:
        raise ValueError(f"{path}: cannot be drawn: {error}; try a name that ends in .png") from None
    return path


def draw(explanation: Explanation) -> Any:
    """The matplotlib figure."""
    matplotlib = optional("matplotlib", "matplotlib", "plot")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    widths = [0.35 + 0.105 * len(word.text) for word in explanation.words]  # inches
    starts = [sum(widths[:place]) for place in range(len(widths))]
    label, row, top, bottom = 1.75, 0.62, 1.0, 0.65
    total = max(sum(widths), 4.0)
    rows = explanation.readings
    size = (label + total + 0.25, top + row * len(rows) + bottom)
    figure = Figure(figsize=size)
    figure.set_layout_engine("none")
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0))
    axes.axis("off")
    heading = textwrap.shorten(f"“{explanation.query}”", max(40, int(size[0] * 9)), placeholder=" ...”")
    axes.text(0.2, 0.3, heading, fontsize=12, fontweight="bold", va="center")

    for place, word in enumerate(explanation.words):
        cued = explanation.cue_operator(place)
        style = {"color": COLOURS[cued], "fontweight": "bold"} if cued else {"color": "#222222"}
        axes.text(label + starts[place] + widths[place] / 2, top - 0.2, word.text, ha="center", fontsize=11, **style)

    strongest = explanation.strongest or 1.0
    for number, reading in enumerate(rows):
        y = top + row * number
        colour = COLOURS[reading.operator] if reading.on else "#9a9a9a"
        state = "on" if reading.on else "off"
        axes.text(0.2, y + 0.24, reading.operator.upper(), fontsize=12, fontweight="bold", color=colour, va="center")
        axes.text(0.78, y + 0.24, state, fontsize=10, color=colour, va="center")
        axes.text(0.2, y + 0.46, f"gate {reading.gate:.2f}", fontsize=8, color="#666666", va="center")
        for place, width in enumerate(widths):
            x, value = label + starts[place], reading.strength[place]
            share = min(value / strongest, 1.0) if reading.on else 0.0
            box = (x + 0.03, y + 0.04), width - 0.06, row - 0.1
            axes.add_patch(Rectangle(*box, facecolor=colour, alpha=share, linewidth=0))
            axes.add_patch(Rectangle(*box, fill=False, edgecolor="#dddddd", linewidth=0.6))
            if reading.on:
                sign = "−" if reading.operator == "not" else "+"
                text_colour = "white" if share > 0.6 else "#333333"
                middle = (x + width / 2, y + row / 2 - 0.01)
                axes.text(
                    *middle, sign + explanation.number(value), fontsize=8, color=text_colour, ha="center", va="center"
                )
            if reading.cues[place]:
                edge = COLOURS[reading.operator] if reading.on else "#777777"
                axes.add_patch(Rectangle(*box, fill=False, edgecolor="black", linewidth=2.6))
                axes.add_patch(Rectangle(*box, fill=False, edgecolor=edge, linewidth=1.4))
    foot = (
        "Shade and number: what attention to the word gains (AND, OR) or loses (NOT), mean over heads and layers. "
        "Outlined: cues. Operators said by " + explanation.decided_by + "."
    )
    if not explanation.trained:
        foot = "UNTRAINED Boolean parts: these values mean nothing yet. " + foot
    wrapped = textwrap.fill(foot, max(40, int((size[0] - 0.4) * 15.5)))
    axes.text(0.2, size[1] - 0.52, wrapped, fontsize=8, color="#555555", va="top", linespacing=1.35)
    return figure
