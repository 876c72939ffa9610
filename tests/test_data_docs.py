"""What docs/data.md shows is what happens."""

import doctest
import textwrap
from pathlib import Path

import boolbert
from boolbert.data.summary import main

PAGE = Path(boolbert.__file__).parent / "docs" / "data.md"


def test_the_examples_run():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0


def test_the_summary_of_the_embedded_data_is_current(capsys):
    main([])
    shown = PAGE.read_text(encoding="utf-8").rpartition("Without a source, the embedded data:")[2]
    now = capsys.readouterr().out
    assert textwrap.dedent(shown).strip() == now.strip(), "put the output of the command at the end of docs/data.md"
