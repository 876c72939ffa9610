"""The scripts end to end on ten documents: every file they promise, and one line where something is wrong."""

import csv
import json
import re

import numpy as np
import pytest
from eval_fixtures import save_model, write_quest

pytest.importorskip("matplotlib")
pytest.importorskip("bm25s")

from boolbert.core.errors import DataError, EvaluationError
from boolbert.eval import boolquestions, compare, exclusion, quest
from boolbert.eval.evidence import figures
from boolbert.eval.exclusion import TrapQuery, TrapSet


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path):
    return str(write_quest(tmp_path / "data"))


@pytest.fixture
def model(tmp_path, tokenizer, tiny_config):
    return str(save_model(tmp_path / "boolean-seed0", tokenizer, tiny_config))


def test_quest_writes_what_it_promises_and_the_same_the_second_time(data, model, tmp_path, capsys):
    for folder in ("out", "again"):
        quest.main(["--model", model, "--data", data, "--split", "dev", "--output_dir", folder, "--device", "cpu"])
    out = tmp_path / "out"
    for name in ("per_query.jsonl", "run.trec", "pictures/violations.svg"):
        assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["queries"] == 6
    assert metrics["system"].endswith("gate learned")  # the model's own
    recall = metrics["metrics"]["all"]["r_precision"]
    assert recall["low"] <= recall["mean"] <= recall["high"]
    assert set(metrics["metrics"]["template"]) > {"_", "_ that are not _"}
    rows = [json.loads(line) for line in (out / "per_query.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert np.mean([row["metrics"]["r_precision"] for row in rows]) == pytest.approx(recall["mean"], abs=1e-5)
    gold = set(rows[3]["gold"])
    assert all((found["mark"] == "hit") == (found["title"] in gold) for found in rows[3]["top"])
    assert {found["title"] for found in rows[3]["top"] if found["mark"] == "violation"} == {"Doc 1", "Doc 3", "Doc 5"}
    run = [line.split() for line in (out / "run.trec").read_text().splitlines()]
    ranked = [document for query, _, document, *_ in run if query == "q3"]
    assert ranked == [found["title"].replace(" ", "%20") for found in rows[3]["top"]]
    assert len((out / "qrels.trec").read_text().splitlines()) == sum(len(row["gold"]) for row in rows)
    assert {path.suffix for path in (out / "pictures").iterdir()} == {".png", ".svg"}
    assert "R-prec" in capsys.readouterr().out


def test_compare_joins_seeds_and_writes_tables_pictures_and_report(
    data, model, tmp_path, tokenizer, tiny_config, capsys
):
    save_model(tmp_path / "boolean-seed42", tokenizer, tiny_config, seed=42)
    save_model(tmp_path / "plain", tokenizer, tiny_config, boolean=False)
    runs = ["boolean-seed0", "boolean-seed42", "plain"]
    compare.main(["--data", data, "--output_dir", "out", "--runs", *runs, "--encoder", "plain", "--device", "cpu"])
    out = tmp_path / "out"
    systems = json.loads((out / "table.json").read_text())
    names = [system["system"] for system in systems]
    assert {f"Bool-BERT boolean, gate {gate}" for gate in ("given", "learned", "cue")} <= set(names)
    assert {"BERT plain", "BM25", "Untrained encoder", "Embedding subtraction"} <= set(names)
    assert {"Decomposition, gold atoms", "Decomposition, parsed atoms on BERT plain"} <= set(names)
    joined = systems[names.index("Bool-BERT boolean, gate given")]
    assert joined["seeds"] == 2
    assert joined["reference"] == "BERT plain"
    assert 0 < joined["p_value"] <= 1
    table = (out / "table.md").read_text()
    assert all(name in table for name in names)
    rows = list(csv.DictReader((out / "table.csv").open()))
    overall = next(r for r in rows if (r["system"], r["group"], r["metric"]) == ("BM25", "all", "mrr@10"))
    assert float(overall["mean"]) == systems[names.index("BM25")]["metrics"]["all"]["mrr@10"]["mean"]
    assert len(json.loads((out / "significance.json").read_text())) == len(names) * (len(names) - 1)
    assert "(2 seeds)" in capsys.readouterr().out

    page = (out / "report.html").read_text()
    assert page.count('src="data:image/svg+xml;base64,') == 2
    assert page.count("<article>") == 6
    assert not re.search(
        r"""(?:src|href)\s*=\s*["'](?!#|data:image/svg)|url\((?!#)|@import|<script""", page
    )  # nothing from outside
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_boolquestions_on_the_embedded_questions(model, tmp_path):
    boolquestions.main(["--model", model, "--output_dir", "out", "--limit", "40", "--device", "cpu"])
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())["metrics"]
    assert {"mrr@10", "accuracy@1", "negative_mrr@10", "negative_accuracy@10"} <= set(metrics["all"])
    assert set(metrics["operator"]) == {"and", "or", "not"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "nowhere"], "no split 'nowhere'; found .*dev"),
        (["--gate", "open"], "--gate must be one of given, learned, cue"),
        (["--model", "no/such/folder"], "no/such/folder"),
        (["--model", "writer"], "is no encoder but GPT2LMHeadModel"),
        (["--precision", "int8"], "precision must be one of"),
        (["--storage", "int8"], "storage must be one of"),
        (["--nonsense"], "unknown argument '--nonsense'"),
        (["--faiss", "Nonsense"], "no index of FAISS"),
    ],
)
def test_wrong_arguments(arguments, message, data, model, tmp_path):
    if "Nonsense" in arguments:
        pytest.importorskip("faiss")
    (tmp_path / "writer").mkdir()
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
    (tmp_path / "writer" / "config.json").write_text(json.dumps(config))
    with pytest.raises((ValueError, OSError), match=message):
        quest.main(["--model", model, "--data", data, "--device", "cpu", *arguments])


def test_compare_refuses_what_is_not_there(data):
    with pytest.raises(EvaluationError, match="no trained model there"):
        compare.main(["--data", data, "--runs", "nothing", "--untrained", "false"])
    with pytest.raises(EvaluationError, match="nothing to compare"):
        compare.main(["--data", data, "--untrained", "false"])


def test_pools_with_traps_say_how_answers_and_traps_stand():
    pool = TrapSet("letters", list("abcd"), [TrapQuery("x", [0], [1]), TrapQuery("y", [3], [0])])
    found = figures(pool, {"s": np.array([[3.0, 2, 1, 0], [4.0, 3, 2, 1]])})["all"]["s"]
    assert (found["above"], found["R@3"], found["V@3"]) == (0.5, 0.5, 1.0)
    assert (found["in ten"], found["others"]) == (1.0, 2.0)
    without = TrapSet("letters", pool.texts, [*pool.queries, TrapQuery("z", [1], [])])
    found = figures(without, {"s": np.ones((3, 4))})["all"]["s"]
    assert "V@3" not in found
    assert found["in ten"] == 1.0  # of the queries that exclude something


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "x", "gold": []}', "field 'traps' is missing"),
        ('{"text": ', "broken JSON at column 10"),
        ("3", "a row must"),
    ],
)
def test_a_pool_that_cannot_be_read_is_told_with_its_line(tmp_path, line, problem):
    (tmp_path / "corpus.jsonl").write_text('{"id": "a", "text": "A"}\n')
    (tmp_path / "queries.jsonl").write_text(f'{{"text": "x", "gold": ["a"], "traps": ["a"]}}\n{line}\n')
    with pytest.raises(DataError, match=rf"queries\.jsonl:2: {problem}"):
        exclusion.read_trap_set(tmp_path)


def test_plain_questions_of_a_folder_are_compared_with_the_plain_encoder(tmp_path, monkeypatch):
    rows = [{"text": "a", "kind": "plain"}, {"text": "b", "kind": "not"}, {"text": "c", "kind": "and"}]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    vectors = {("ours", "c"): 1.0}  # 0 for all others
    encode = lambda model, texts, *_, **__: np.array([[vectors.get((model, text), 0.0)] for text in texts])  # noqa: E731
    monkeypatch.setattr(exclusion, "encode_inputs", encode)
    assert exclusion.changed_queries("ours", "plain", str(tmp_path)) == (["c"], 2)
    with pytest.raises(EvaluationError, match=r"boolmovies: no such folder .* give the split too: boolmovies:dev"):
        exclusion.changed_queries("ours", "plain", "boolmovies")  # once the countries, without a word
    changed, asked = exclusion.changed_queries("ours", "plain", f"{write_quest(tmp_path / 'data')}:dev")
    assert (changed, asked) == ([], 2)
