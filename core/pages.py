# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Pages from the files in templates/: each HTML page is one file that needs nothing from outside of it.

page.html          the frame that all pages share: its style is for a phone as well as a desktop, light or dark
report.html        an evaluation
explanation.html   what Bool-BERT makes of a query
serve.html         the page of `boolbert serve`, with serve.css and serve.js
card.md, run.md    the card of a published model, and the README.md of a run's folder
"""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from .terminal import fitted, printable


def render(template: str, **values: Any) -> str:
    """A page from a template. In HTML every value is escaped: none becomes an element."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(disabled_extensions=("md",), default=True),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,  # a name that is not passed is a mistake, not an empty text
    )
    environment.filters |= {"printable": printable, "fitted": fitted, "number": "{:,}".format}
    return environment
