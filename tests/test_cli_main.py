"""The command line: fast help, one-line errors with exit code 2, JSON for machines, colour for terminals."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from search_fixtures import QUERY, write_baseline, write_documents

from boolbert.cli import main
from boolbert.cli.main import TOOLS
from boolbert.cli.show import has_colour


@pytest.fixture
def model(tmp_path, run_once):
    return str(shutil.copytree(run_once(), tmp_path / "model"))


@pytest.fixture
def index(tmp_path, model, made_once, run_once, capsys):
    """Of the model that `model` is a copy of."""

    def make(folder):
        docs = write_documents(folder / "docs.jsonl")
        assert main(["index", str(docs), "--output", str(folder / "index"), "--model", str(run_once())]) == 0
        assert "10 documents" in capsys.readouterr().out

    return str(shutil.copytree(made_once("indexed", make) / "index", tmp_path / "index"))


def test_help_needs_neither_torch_nor_numpy():
    code = (
        "import sys; from boolbert.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in ("index", "search", "explain", "serve", "data", "demo", "publish", "export"):
        assert f"    {command} " in done.stdout
    assert "examples:" in done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["a OR NOT war"], "the search does not know OR NOT; ask for each of the two by itself"),
        (['films -""', "-k", "3"], "nothing follows '-' in the query 'films -\"\"'"),
        (["-"], "the query '-' has no words to look for"),
        (["not"], "the query 'not' has no words to look for"),
        (["jackets", "-hood"], 'put the query in quotes, it is one argument: boolbert search "jackets -hood"'),
        (["-k3", "jackets", "-hood", "red"], 'it is one argument: boolbert search "jackets red -hood"'),
        (["-k", "3", "films", "not", "war"], 'put the query in quotes, it is one argument: boolbert search "films not'),
    ],
)
def test_a_minus_is_no_flag_and_a_query_needs_quotes(words, line, index, tmp_path, capsys):
    assert main(["search", *words, "--index", index, "--model", str(tmp_path / "model")]) == 2
    assert line in capsys.readouterr().err.strip().splitlines()[-1]
    with pytest.raises(SystemExit):
        main(["explain", "islands", "--no-such-flag"])
    assert "unrecognized arguments: --no-such-flag" in capsys.readouterr().err


@pytest.mark.parametrize("query", ["-hood films", "-kings of war films"])
def test_a_query_may_begin_with_what_it_excludes(query, index, tmp_path, capsys):
    """argparse would read -h and -k."""
    ask = ["search", query, "-k", "3", "--not-weight", "0.5", "--index", index, "--model", str(tmp_path / "model")]
    assert main([*ask, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["query"] == query


def test_notes_say_how_signs_were_read(index, tmp_path, capsys):
    for query, note in {
        "films -v": 'note: “-v” is read as a word of the query; to leave it out, write -"v"',
        "films -sugar-free": "which asks for it; it is read as: films AND sugar",
    }.items():
        assert main(["search", query, "--index", index, "--model", str(tmp_path / "model")]) == 0
        assert note in (told := capsys.readouterr().err)
        assert "nothing is excluded" not in told
    assert main(["search", "films except those without war", "--index", index, "--model", str(tmp_path / "model")]) == 0
    assert "note: " not in capsys.readouterr().err  # the reader knows that this asks for war


@pytest.mark.parametrize("kind", ["model", "plain"])
def test_a_query_that_is_cut_says_so(tmp_path, index, kind, capsys, lively, tiny_config, tokenizer):
    """By the model and, the second time, by its stored program; by a plain encoder too. Else nothing is said."""
    if kind == "plain":
        write_baseline(tmp_path / "plain", lively, tiny_config, tokenizer)
    for query, is_cut in {"films " * 40: True, "films" + "a" * 900: False, "films \ufffd": False}.items():
        for _ in range(2):
            assert main(["search", query, "--index", index, "--model", str(tmp_path / kind), "--json"]) == 0
            done = capsys.readouterr()
            assert done.err.count("note: The query is longer than the model reads") == is_cut
            assert json.loads(done.out)["truncated"] == is_cut


@pytest.mark.parametrize("command", ["index", "search", "explain", "serve", "data", "demo"])
def test_every_command_has_examples(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"  boolbert {command}" in capsys.readouterr().out


def test_search_in_words_and_in_json(index, capsys):
    arguments = ["search", QUERY, "--index", index, "-k", "3", "--operators", "and,not"]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "operators: AND NOT (said by the caller)" in shown.out
    assert "\x1b" not in shown.out  # not a terminal
    assert "Model: " in shown.err
    assert main([*arguments, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["operators"] == ["and", "not"]
    assert [hit["rank"] for hit in value["hits"]] == [1, 2, 3]
    for hit in value["hits"]:
        line = next(line for line in shown.out.splitlines() if hit["title"] in line)
        assert [float(number) for number in line.split()[1:4]] == [
            pytest.approx(hit[name], abs=6e-4) for name in ("score", "wanted", "excluded")
        ]
    first = shown.out.splitlines()[0]  # the query as it was read
    assert first.replace("[-", "").replace("-]", "") == QUERY
    for span in value["excluded_words"]:
        assert f"[-{span['text']}-]" in first


def test_limits_are_passed_on(index, capsys):
    arguments = ["search", QUERY, "--index", index, "--operators", "not", "--json"]

    def hits(*flags):
        assert main([*arguments, *flags]) == 0
        return json.loads(capsys.readouterr().out)["hits"]

    whole = hits("--not-weight", "0", "--no-evidence")
    assert [hit["score"] for hit in whole] == pytest.approx([hit["wanted"] for hit in whole], abs=1e-5)
    by_kind = [[hit["score"] for hit in hits("--not", kind, "--no-evidence")] for kind in ("set", "property")]
    assert by_kind[0] != pytest.approx(by_kind[1], abs=1e-3)
    assert main(["explain", *arguments[1:], "--not-weight", "0.75"]) == 0
    assert json.loads(capsys.readouterr().out)["not_weight"] == 0.75


def test_explain_writes_page_and_picture(index, tmp_path, capsys, monkeypatch):
    files = [str(tmp_path / name) for name in ("e.html", "e.png")]
    arguments = ["explain", QUERY, "--index", index, "-k", "3", "--operators", "not"]
    assert main([*arguments, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert len(value["attention"]) == 3
    assert main([*arguments, "--html", files[0], "--png", files[1]]) == 0
    shown = capsys.readouterr().out
    (vector,) = (line for line in shown.splitlines() if line.startswith("vector"))
    assert f" − {value['not_weight']:.2f} × “" in vector
    assert "    plain encoder " in shown
    assert all(os.path.getsize(name) > 1000 for name in files)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(arguments) == 0
    assert f"\x1b[9;38;2;213;94;0m{value['excluded_words'][0]['text']}\x1b[0m" in capsys.readouterr().out


def test_explain_against_a_baseline_of_the_same_documents(index, tmp_path, capsys, lively, tiny_config, tokenizer):
    baseline = str(write_baseline(tmp_path / "bert", lively, tiny_config, tokenizer))
    assert main(["explain", QUERY, "--index", index, "--baseline", baseline, "-k", "4"]) == 0
    assert baseline in capsys.readouterr().out
    other = write_baseline(tmp_path / "other", lively, tiny_config, tokenizer, document_seed=6)
    assert main(["explain", QUERY, "--index", index, "--baseline", str(other)]) == 2
    assert "another document encoder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", " "], "the query is empty"),
        (["search", "a", "-k", "0"], "-k must be at least 1"),
        (["search", "a", "--operators", "xor"], "--operators must be a list out of and,or,not, or none; got 'xor'"),
        (["search", "a", "--model", "MODEL", "--not-weight", "-1"], "must be a number of at least 0, got -1.0"),
        (["search", "a", "--index", "nowhere"], "no index there"),
        (["search", "a", "--index", __file__], "no index there"),
        (["search", "a", "--model", "./nowhere"], "./nowhere: no such folder"),
        (["index", "./nowhere.jsonl", "--output", "x", "--model", "MODEL"], "no such file or folder"),
        (["explain", "a", "--png", "nowhere/x.png"], "its folder does not exist"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(arguments, message, model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([model if word == "MODEL" else word for word in arguments]) == 2
    shown = capsys.readouterr()
    last = shown.err.strip().splitlines()[-1]
    assert last.startswith("boolbert: error: ")
    assert message in last
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("words", TOOLS, ids=" ".join)
def test_programs_under_one_name(words, capsys):
    """Each shows its own help under the name that a user has typed."""
    with pytest.raises(SystemExit) as end:
        main([*words, "--help"])
    assert end.value.code == 0
    assert f"boolbert {' '.join(words)} " in capsys.readouterr().out


def test_a_program_is_given_its_words(tmp_path, capsys):
    assert main(["data", "countries", "--output", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / "train.jsonl").exists()
    assert main(["data", "summary", str(tmp_path / "nowhere")]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr("boolbert.cli.commands.search", lambda options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["search", "a"])


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    terminal = SimpleNamespace(isatty=lambda: True)
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert has_colour(terminal)
    assert not has_colour(SimpleNamespace(isatty=lambda: False))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colour(terminal)


def test_a_query_that_may_exclude_something_says_so(tmp_path, index, capsys, monkeypatch):
    """On standard error, so that JSON stays JSON; not where something is excluded or the operators were given."""
    why = "note: nothing is excluded: it is not certain that “the” leaves something out; to leave something out, write "
    monkeypatch.setattr("boolbert.search.query_reader.DOUBT", 0.0)  # so that any word that is no condition may
    for query, operators, excluded, is_told in (
        ("the films about war", [], [], True),
        ("the films about war", ["--operators", "none"], [], False),
        ("films that are not about war", [], ["war"], False),
        ("Which birds do not fly?", [], ["fly"], False),
        ("films about war", [], [], False),
    ):
        assert main(["search", query, "--index", index, "--model", str(tmp_path / "model"), "--json", *operators]) == 0
        done = capsys.readouterr()
        assert [words["text"] for words in json.loads(done.out)["excluded_words"]] == excluded
        assert (why in done.err) == is_told
        assert ("nothing is excluded" in done.err) == is_told
