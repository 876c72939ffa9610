"""How well the clauses' denials fit labelled sentences: `python tests/denial_scores.py dev --errors`.

A line of tests/denials/{dev,test}.tsv is a sentence, a tab, and the words that it denies, or `-`. The words are those
with a meaning: what is a thing with its qualities ("no added sugar": added sugar), what is done with its objects
("did not return to Paris": return Paris), and not the verbs that only say that something is there (have, contain,
need). Denied twice ("not without risk"), only supposed ("if it does not fit") or said of others ("those who do not
eat meat") is not denied. The rules were developed on dev alone.
"""

import re
import sys
from pathlib import Path

from boolbert.boolean.clauses import split_clauses
from boolbert.boolean.denials import WORDS

FOLDER = Path(__file__).parent / "denials"
NO_MEANING = ("light", "prepositions", "pronouns", "joins", "articles")
EMPTY = {"or", "and"}.union(*(WORDS[name] for name in NO_MEANING))
WORD = re.compile(r"\w+(?:[\-'’]\w+)*")


def sentences(split):
    lines = (FOLDER / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
    for line in lines:
        text, words = line.split("\t")
        yield text, [] if words == "-" else words.split()


def words_of(text, spans):
    """The words with a meaning in these spans, in small letters."""
    found = {word.lower() for start, end in spans for word in WORD.findall(text[start:end])}
    return {word for word in found if word not in EMPTY}


def denial_scores(split, report=None):
    """F1 of the sentences that deny, of the clauses that do, and of the denied words.

    A clause ought to deny where it holds a denied word.
    """
    counts = {"sentence": [0, 0, 0], "clause": [0, 0, 0], "word": [0, 0, 0]}

    def count(kind, found, expected):
        right = len(found & expected)
        for place, number in enumerate((right, len(found) - right, len(expected) - right)):
            counts[kind][place] += number

    for text, expected in sentences(split):
        expected = {word.lower() for word in expected}
        clauses = split_clauses(text)
        denying = {clause for clause in clauses if clause.denies}
        found = set().union(*(words_of(text, clause.denied) for clause in denying))
        word = re.compile(rf"\b(?:{'|'.join(map(re.escape, expected)) or '(?!)'})(?:less)?\b", re.I)
        ought = {clause for clause in clauses if word.search(text[clause.start : clause.end])}
        count("sentence", {text} if denying else set(), {text} if expected else set())
        count("clause", denying, ought)
        count("word", found, expected - EMPTY)
        if report and (found != expected - EMPTY or denying != ought):
            report(f"{text}\n    expected {sorted(expected)}, found {sorted(found)}")
    return {kind: 2 * right / (2 * right + wrong + missed) for kind, (right, wrong, missed) in counts.items()}


if __name__ == "__main__":
    for kind, score in denial_scores(sys.argv[1], print if "--errors" in sys.argv else None).items():
        print(f"{kind} F1 {score:.3f}")
