# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""How a script reads its flags: a dataclass whose fields have help texts becomes a command line."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import field
from typing import Any, NoReturn, TypeVar, cast

from boolbert.core.addresses import shown_name
from boolbert.core.errors import BoolBertError, cut
from boolbert.core.files import check_file, check_folder
from boolbert.core.terminal import printable

Arguments = TypeVar("Arguments")


def flag(default: Any, text: str) -> Any:
    """A dataclass field that is a flag with a help text; [] for one that takes any number of values."""
    if default == []:
        return field(default_factory=list, metadata={"help": text})
    return field(default=default, metadata={"help": text})


class Parser(ArgumentParser):
    """A parser whose errors repeat little of what was typed, and never the password of an address: where a flag is
    mistyped, argparse repeats every word."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        for word in self._words:
            value = word.partition("=")[2] if word.startswith("-") else word
            for quoted in (value, repr(value)[1:-1]):
                message = message.replace(quoted, shown_name(quoted)) if value else message
        super().error(cut(printable(message)))


def parse_arguments(kind: type[Arguments], description: str | None, words: Sequence[str] | None = None) -> Arguments:
    """The dataclass `kind`, filled from the command line, or from `words` where they are passed.

    `description` is what --help shows first: the script's docstring, line by line as it is written.
    """
    from transformers import HfArgumentParser

    parser: Any = HfArgumentParser(
        cast(Any, kind), description=description, formatter_class=RawDescriptionHelpFormatter
    )
    values, unknown = parser.parse_args_into_dataclasses(words, return_remaining_strings=True)
    if unknown:
        raise BoolBertError(f"unknown argument {unknown[0]!r}; --help lists them all")
    for name, check in (("output_dir", check_folder), ("output", check_file)):  # now, not when all is computed
        if output := getattr(values, name, None):
            check(output)
    return values


def add_document_flags(parser: ArgumentParser) -> None:
    """The flags that say how a user's documents are read; `boolbert.data.own.documents_of` takes them."""
    parser.add_argument("--text", metavar="FIELD", help="field of the text, or several: body,notes")
    parser.add_argument("--title", metavar="FIELD", help="field of the title, or none")
    parser.add_argument("--id", metavar="FIELD", help="field of the id, or none")
    parser.add_argument("--atoms", metavar="FIELDS", help="fields that sort documents into sets: genre,year; or none")
    links = "read links in a folder of texts that lead out of it; they are refused if not given"
    parser.add_argument("--follow-links", action="store_true", help=links)
    parser.add_argument("--passages", action="store_true", help="cut long documents into passages that overlap")
