"""An explanation as a picture: the query with its excluded words struck through, the results before and
after, and under each the clause that decides."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boolbert.boolean.query import COLOURS, WordGroup
from boolbert.core.errors import BoolBertError, optional
from boolbert.core.files import whole_file
from boolbert.core.terminal import fitted

from .explanation import Change, Explanation

LONGEST_LABEL = 40  # letters of a word, or of a title; a longer one is cut
ROWS = 30  # results of each ranking
BELOW = 200  # the rank that a document is drawn at where it was not found
WIDTH, MARGIN, ROW, DPI = 10.4, 0.4, 0.3, 160  # inches
REASON = 0.17  # what a line under each result adds: the clause that decides
LEFT, RIGHT = 0.37 * WIDTH, 0.61 * WIDTH  # where the two rankings face each other
LARGEST, LARGE, MEDIUM, SMALL = 22, 17, 11.5, 9.5  # points; the query shrinks from the first to the second
MOST = 300  # letters of a note
INK, SOFT, FAINT = "#1c2430", "#6b7480", "#c3c9d1"
TINTS = {operator: f"#{bytes(rgb).hex()}" for operator, rgb in COLOURS.items()}


def write_picture(explanation: Explanation, path: str | Path) -> Path:
    """Write a PNG, or what the file's ending says (.svg, .pdf)."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".") or "png"
    figure = draw(explanation)
    if kind not in figure.canvas.get_supported_filetypes():
        raise BoolBertError(f"{path}: pictures of this kind cannot be drawn; try a name that ends in .png")
    with whole_file(path) as aside:
        figure.savefig(aside, format=kind, dpi=DPI, metadata={"Software": None} if kind == "png" else None)
    return path


def draw(explanation: Explanation) -> Any:
    """The matplotlib figure."""
    matplotlib = optional("matplotlib", "matplotlib", "plot")
    matplotlib.use("Agg")
    with matplotlib.rc_context({"text.parse_math": False, "text.usetex": False}):  # a "$" in a query is a dollar
        return Canvas(explanation).draw()


class Canvas:
    """A figure that is drawn from the top down, in inches."""

    def __init__(self, explanation: Explanation):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.explanation = explanation
        self.row = ROW + REASON * any(change.hit.reasons for change in explanation.after)
        self.figure = Figure(figsize=(WIDTH, 1), dpi=DPI)
        self.figure.set_layout_engine("none")
        self.renderer = FigureCanvasAgg(self.figure).get_renderer()
        self.axes: Any = self.figure.add_axes((0, 0, 1, 1))
        self.axes.axis("off")

    def draw(self) -> Any:
        bottom = self.draw_query(MARGIN)
        bottom = self.draw_composition(bottom)
        bottom = self.draw_results(bottom) + 0.1
        self.axes.set(xlim=(0, WIDTH), ylim=(bottom, 0))
        self.figure.set_size_inches(WIDTH, bottom)
        return self.figure

    def text(self, x: float, y: float, text: str, size: float, colour: str = INK, **options: Any) -> None:
        self.axes.text(x, y, text, fontsize=size, color=colour, va="center_baseline", **options)

    def width(self, text: str, size: float) -> float:
        """How wide a text is drawn."""
        from matplotlib.font_manager import FontProperties

        font = FontProperties(size=size)
        return self.renderer.get_text_width_height_descent(text, font, ismath=False)[0] / self.figure.dpi

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str, width: float, **options: Any) -> None:
        self.axes.plot(xs, ys, color=colour, linewidth=width, **options)

    def draw_query(self, y: float) -> float:
        """The query in large words: excluded ones struck through, alternatives in boxes, cues underlined."""
        reading = self.explanation.reading
        room, wide = WIDTH - 2 * MARGIN, self.width(fitted(reading.text, MOST), LARGEST)
        size = min(max(LARGEST * 0.95 * room / max(wide, 1e-6), LARGE), LARGEST)
        x, end = MARGIN, 0
        for group in reading.word_groups:
            begin: float | None = None  # of the group's part on this line
            x += 0.1 if group.role == "alternative" else 0.0
            for word in group.words:
                text = fitted(word.text, LONGEST_LABEL)
                wide = self.width(text, size)
                gap = self.space(size) if word.start > end and x > MARGIN else 0.0
                if x + gap + wide > WIDTH - MARGIN and x > MARGIN + 0.1:
                    if begin is not None:
                        self.mark(group, begin, x, y)
                    x, y, gap, begin = MARGIN, y + 0.034 * size, 0.0, None
                x += gap
                begin = x if begin is None else begin
                self.text(x, y, text, size, TINTS["not"] if group.role == "excluded" else INK)
                x, end = x + wide, word.end
            if begin is not None:
                self.mark(group, begin, x, y)
            x += 0.1 if group.role == "alternative" else 0.0
        return y + 0.6

    def space(self, size: float) -> float:
        return self.width("n n", size) - 2 * self.width("n", size)

    def mark(self, group: WordGroup, start: float, end: float, y: float) -> None:
        """Show the role of a group of words, on one line."""
        from matplotlib.patches import FancyBboxPatch

        if group.role == "excluded":
            self.line([start - 0.03, end + 0.03], [y, y], TINTS["not"], 2.4, solid_capstyle="butt", gid="excluded")
        elif group.role == "alternative":
            style = "round,pad=0,rounding_size=0.08"
            box = ((start - 0.08, y - 0.23), end - start + 0.16, 0.46)
            self.axes.add_patch(
                FancyBboxPatch(*box, boxstyle=style, fill=False, edgecolor=TINTS["or"], linewidth=2, gid="alternative")
            )
        elif group.role:
            self.line([start, end], [y + 0.19, y + 0.19], TINTS[group.role], 3, solid_capstyle="butt", gid="cue")
            middle = (start + end) / 2
            self.text(middle, y + 0.31, group.role.upper(), 8, TINTS[group.role], ha="center", fontweight="bold")

    def draw_composition(self, y: float) -> float:
        """What the query's vector is made of, and notes for the reader."""
        explanation, reading = self.explanation, self.explanation.reading
        if explanation.composition:
            wanted, excluded = (fitted(text, MOST) for text in (reading.wanted_text, reading.excluded_text))
            parts = [("query vector =", SOFT), (wanted, INK), (f"− {explanation.not_weight:.2f} ×", SOFT)]
            y = self.flow([*parts, (excluded, TINTS["not"])], y, MEDIUM) + 0.05
        for note in explanation.notes:
            y = self.flow([(fitted(note, MOST), SOFT)], y, SMALL)
        return y

    def flow(self, parts: Sequence[tuple[str, str]], y: float, size: float) -> float:
        """Texts of several colours, broken into lines; returns where the next line goes."""
        x = MARGIN
        for text, colour in parts:
            for word in text.split():
                wide = self.width(fitted(word, LONGEST_LABEL), size)
                if x > MARGIN and x + wide > WIDTH - MARGIN:
                    x, y = MARGIN, y + 0.022 * size
                self.text(x, y, fitted(word, LONGEST_LABEL), size, colour)
                x += wide + self.space(size)
        return y + 0.024 * size

    def draw_results(self, y: float) -> float:
        """Both rankings, the plain one on the left, with a line from each document to its new rank."""
        explanation = self.explanation
        before, after = explanation.before[:ROWS], explanation.after[:ROWS]
        self.line([MARGIN, WIDTH - MARGIN], [y, y], FAINT, 0.8)
        y += 0.32
        name = fitted(explanation.plain_name, LONGEST_LABEL)
        self.text(LEFT, y, name, 13, fontweight="bold", ha="right")
        self.text(RIGHT, y, "Bool-BERT", 13, fontweight="bold")
        counts = [fitted(explanation.violations(changes), 46) for changes in (explanation.before, explanation.after)]
        if any(counts):
            y += 0.26
            self.text(LEFT, y, counts[0], SMALL, TINTS["not"], ha="right")
            self.text(RIGHT, y, counts[1], SMALL, TINTS["not"])
        top = y + 0.36
        for change in before:
            self.draw_result(change, top, LEFT, right=False)
            self.link(change, change.rank, change.other or BELOW, top)
        for change in after:
            self.draw_result(change, top, RIGHT, right=True)
            if change.other is None or change.other > len(before):
                self.link(change, change.other or BELOW, change.rank, top)
        return top + self.row * max(len(before), len(after), 1)

    def draw_result(self, change: Change, top: float, x: float, *, right: bool) -> None:
        y, rank = top + self.row * (change.rank - 1), str(change.rank)
        colour, mark = (TINTS["not"], "✗ ") if change.hit.is_against else (INK, "")
        shown = mark + fitted(change.hit.title, 30)
        if right:
            self.text(x + 0.24, y, rank, SMALL, SOFT, ha="right")
            self.text(x + 0.38, y, shown, MEDIUM, colour)
            after_title = x + 0.5 + self.width(shown, MEDIUM)
            self.text(after_title, y, change.moved, 8.5, SOFT)
            if reason := change.hit.deciding:
                sign, colour = ("+", TINTS["or"]) if reason.speaks_for else ("−", TINTS["not"])
                label = f"{sign} {fitted(reason.label, 20)}:"
                self.text(x + 0.38, y + REASON, label, 8, colour)
                behind = x + 0.45 + self.width(label, 8)
                self.text(behind, y + REASON, fitted(reason.clause, int((WIDTH - behind) / 0.067)), 8, SOFT)
        else:
            self.text(x, y, rank, SMALL, SOFT, ha="right")
            self.text(x - 0.38, y, shown, MEDIUM, colour, ha="right")

    def link(self, change: Change, left: int, right: int, top: float) -> None:
        """A line from a rank on the left to one on the right; it leaves the picture where one of them is not shown."""
        ys = [top + self.row * (rank - 1) for rank in (left, right)]
        colour = TINTS["not"] if change.hit.is_against else SOFT
        self.line([LEFT + 0.12, RIGHT - 0.02], ys, colour, 1.4, alpha=0.55, solid_capstyle="round", gid="link")
