"""The command line: boolbert index, search, explain, data and demo."""

from .main import main

__all__ = ["main"]
