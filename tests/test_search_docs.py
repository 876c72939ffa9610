"""The Python example of docs/search.md runs, with the newest run under ./runs, over the embedded countries."""

import re
from pathlib import Path

from search_fixtures import write_run

import boolbert

PAGE = Path(boolbert.__file__).parent / "docs" / "search.md"


def test_the_example_runs(tmp_path, monkeypatch, capsys, lively, tiny_config, tokenizer):
    write_run(tmp_path / "runs" / "quest", lively, tiny_config, tokenizer)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "cache"))
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: dict = {}
    exec(code, found)
    assert len(found["answer"]) == 5
    assert capsys.readouterr().out.startswith("('not',) [")
    assert len(list((tmp_path / "cache" / "indexes").iterdir())) == 1  # kept for the next call
