"""What the commands do. Each imports what it needs when it runs, so that help is there at once."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from boolbert.errors import BoolBertError
from boolbert.terminal import print_json, printable


def index(options: Namespace) -> None:
    from boolbert.data.own import documents_of
    from boolbert.search import build_index, load_model

    documents = documents_of(options)  # before a model is loaded: a wrong name is told at once
    _say(documents.preview())
    model = load_model(options.model, device=options.device)
    _say(model.note)
    built = build_index(documents, options.output, model)
    for note in documents.report.lines(documents.passages):
        _say(f"note: {note}")
    if options.json:
        print_json({"folder": str(built.folder), **built.manifest})
    else:
        folder = printable(str(built.folder))
        print(f"{folder}: {len(built):,} documents, ready for: boolbert search QUERY --index {folder}")


def search(options: Namespace) -> None:
    from .show import show_answer

    operators = parse_operators(options.operators)
    searcher = _searcher(options)
    answer = searcher.search(options.query, options.k, operators, **_limits(options))
    if options.json:
        print_json({"model": searcher.model.name, **answer.as_json()})
    else:
        print(show_answer(answer))


def explain(options: Namespace) -> None:
    from .show import show_explanation

    operators = parse_operators(options.operators)
    for name in (options.html, options.png):
        if name and not Path(name).absolute().parent.is_dir():
            raise BoolBertError(f"{name}: its folder does not exist; make it first")
    searcher = _searcher(options)

    from boolbert.search import BoolSearcher, load_model
    from boolbert.search import explain as explain_query

    baseline = None
    if options.baseline is not None:
        plain = load_model(options.baseline, device=options.device)
        baseline = BoolSearcher(plain, searcher.index if options.index or searcher.index.fits(plain) else None)
    explanation = explain_query(searcher, options.query, options.k, operators, baseline=baseline, **_limits(options))
    if options.html:
        from boolbert.search.page import write_page

        write_page(explanation, options.html)
    if options.png:
        from boolbert.search.picture import write_picture

        write_picture(explanation, options.png)
    if options.json:
        print_json({"model": searcher.model.name, **explanation.as_json()})
    else:
        print(show_explanation(explanation))
        for name in filter(None, (options.html, options.png)):
            print(f"written: {printable(name)}")


def demo(options: Namespace) -> None:
    from .demo import run_demo

    run_demo(Path(options.output) if options.output else None, fresh=options.fresh, quick=options.quick)


def parse_operators(text: str | None) -> list[str] | None:
    """
    >>> parse_operators("and, NOT"), parse_operators("none"), parse_operators(None)
    (['and', 'not'], [], None)
    """
    from boolbert.boolean import OPERATORS

    if text is None:
        return None
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return []
    if not names or not set(names) <= set(OPERATORS):
        raise BoolBertError(f"--operators must be a list out of {','.join(OPERATORS)}, or none; got {text!r}")
    return names


def _limits(options: Namespace) -> dict[str, Any]:
    return {"not_weight": options.not_weight, "exclude_above": options.exclude_above}


def _searcher(options: Namespace) -> Any:
    from boolbert.search import BoolSearcher, load_model

    if options.k < 1:
        raise BoolBertError(f"-k must be at least 1, got {options.k}")
    if not options.query.strip():
        raise BoolBertError("the query is empty; give some words to search for")
    model = load_model(options.model, device=options.device) if options.model or not options.index else None
    searcher = BoolSearcher(model, options.index, device=options.device)
    _say(searcher.model.note)
    return searcher


def _say(line: str) -> None:
    """For people, beside the results: standard error."""
    for part in line.split("\n"):
        print(printable(part), file=sys.stderr)
