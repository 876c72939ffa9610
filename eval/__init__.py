"""Evaluation: encode, search, rank, compare. Scripts: quest.py, boolquestions.py, compare.py and report.py."""

from ..core.environment import keep_freed_memory

keep_freed_memory()
