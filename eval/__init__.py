"""Evaluation: encode, search, rank, compare. Scripts: quest.py, boolquestions.py, compare.py."""
