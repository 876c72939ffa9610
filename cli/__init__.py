"""The command line, `boolbert`: search, explain, serve, index, data, demo, publish and export."""

from .main import main

__all__ = ["main"]
