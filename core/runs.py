# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""A training run's folder: whether it is finished, which script wrote it, with which flags, and what it reached.

args.json       the script, its flags and what it started from; written when training starts
config.json, modules.json, ...   the model; written at the end
metrics.json    what it reached, and the flags again; written last, so a run is finished when it is there
"""

import os
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from boolbert.core.errors import BoolBertError
from boolbert.core.files import read_object

ARGUMENTS, METRICS = "args.json", "metrics.json"
CONFIG, MODULES = "config.json", "modules.json"
T = TypeVar("T")


class Run:
    """One run's folder. Its files are read when they are first asked for."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @property
    def finished(self) -> bool:
        """Whether the folder's model is the one that its flags describe.

        A run that was started again in the folder of an older one, with other flags, is not finished until it has
        written its own metrics.
        """
        if not (self.folder / METRICS).is_file():
            return False
        recorded = self._record.get("arguments")
        reached = self.metrics.get("arguments", recorded)
        return not recorded or _settings(reached) == _settings(recorded)

    @property
    def finished_at(self) -> float:
        """When it was finished, in seconds since 1970."""
        return (self.folder / METRICS).stat().st_mtime

    @property
    def script(self) -> str | None:
        """The name of the script that trained it, without .py; None for a folder that no script wrote."""
        return _of_type(str, self._record.get("script"))

    @property
    def arguments(self) -> dict[str, Any]:
        """The flags of the script."""
        found = (_of_type(dict, content.get("arguments")) for content in (self._record, self.metrics))
        return next(filter(None, found), {})

    @property
    def data(self) -> str | None:
        """The data that it was trained on; None for the embedded data."""
        return _of_type(str, self.arguments.get("data"))

    @property
    def data_is_from_hub(self) -> bool:
        """Whether `data` names a data set of the Hub; "quest/films" could also be a folder that is gone by now."""
        return self._record.get("data_source") == "hub"

    @property
    def start(self) -> dict[str, Any]:
        """What it started from: the path and the kind of its encoder."""
        return _of_type(dict, self._record.get("start")) or {}

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What stands in metrics.json; empty where there is none."""
        return _read(self.folder / METRICS)

    @property
    def has_retriever(self) -> bool:
        """Whether the folder holds a dual encoder, as sentence-transformers loads it."""
        return (self.folder / MODULES).is_file()

    @property
    def is_bool_bert(self) -> bool:
        return is_bool_bert(self.folder)

    @cached_property
    def _record(self) -> dict[str, Any]:
        return _read(self.folder / ARGUMENTS)


def finished_runs(root: str | os.PathLike[str]) -> list[Run]:
    """The finished runs in a folder and all folders below it, in the order of their names."""
    found = []
    for path in sorted(Path(root).glob(f"**/{ARGUMENTS}")):
        run = Run(path.parent)
        try:
            if run.script and run.finished:
                found.append(run)
        except BoolBertError:  # damaged files: no run to show, and no reason to stop
            continue
    return found


def is_bool_bert(folder: str | os.PathLike[str]) -> bool:
    """Whether the encoder in a folder (of a run, the query encoder) is a Bool-BERT. False where there is no encoder."""
    from boolbert.configuration_boolbert import BoolBertConfig

    return _read(Path(folder) / CONFIG).get("model_type") == BoolBertConfig.model_type


def _read(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _of_type(kind: type[T], value: object) -> T | None:
    """The value, or None where it is of another type: a folder's args.json may come from another program."""
    return value if isinstance(value, kind) else None


def _settings(arguments: Any) -> Any:
    """The flags that shape the result: whether a run was resumed or may overwrite another does not."""
    if not isinstance(arguments, dict):
        return arguments
    return {name: value for name, value in arguments.items() if name not in ("resume", "overwrite")}
