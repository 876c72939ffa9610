"""The project's own questions that negate and exclude nothing: a hundred subjects, asked about in two styles."""

import json
from pathlib import Path

import boolbert
from boolbert.boolean import operators_of, read_parts

FILE = Path(boolbert.__file__).parent / "data" / "negated_predicates" / "queries.jsonl"


def test_they_negate_and_hardly_any_is_read_as_an_exclusion():
    texts = [json.loads(line)["text"] for line in FILE.read_text(encoding="utf-8").splitlines()]
    assert len(set(texts)) == 200
    assert sum("not" in operators_of(text) for text in texts) >= 195
    excluding = [text for text in texts if read_parts(text).excluded]
    assert len(excluding) <= 3, excluding
