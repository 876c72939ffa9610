"""`boolbert fit`: from documents alone to a model and an index."""

import json
import re
import shlex
import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from own_documents import COLUMNS, products, write_products

import boolbert
from boolbert.cli import main
from boolbert.core.errors import BoolBertError
from boolbert.core.runs import Run
from boolbert.data.tasks import quest_splits
from boolbert.retrieval.encoders import random_bert
from boolbert.retrieval.models import load_model
from boolbert.search import BoolSearcher
from boolbert.train import fit as fit_module
from boolbert.train.fit import ORIGINAL_WEIGHT, SCHEDULES, fit, plan

SHORT = {"queries": 70, "epochs": 1, "document_side": "fixed"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny Bool-BERT to start from, with random weights."""
    from boolbert.retrieval.models import load_encoder, with_fresh_attention

    folder = tmp_path_factory.mktemp("tiny")
    plain = load_encoder(str(random_bert()), quiet=True)
    with_fresh_attention(plain, share=True, query_length=None, gate="cue").save(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="module")
def shop():
    return [dict(zip(COLUMNS, row, strict=True)) for row in products(80)]


def quiet(*lines):
    return None


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, tiny, shop):
    """What the tests that only look at a fit share."""
    return fit(shop, tmp_path_factory.mktemp("fit") / "fitted", model=tiny, say=quiet, **SHORT)


def asked_atoms(path):
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {atom for row in rows for atom in row["metadata"]["atoms"]}


def test_leaves_a_model_and_an_index_that_move_together(tmp_path, tiny, shop, fitted):
    shutil.copytree(fitted.folder, tmp_path / "fitted")
    assert fitted.before.keys() == fitted.after.keys() >= {"r_precision", "mrr@10", "negated"}
    assert fitted.before != fitted.after
    assert Run(fitted.folder / "model").start["encoder"] == str(tiny)
    assert {path.name for path in (tmp_path / "fitted").iterdir()} == {
        *(
            "model",
            "queries",
            "vectors",
            "fit.json",
            "index.json",
            "documents.jsonl",
            "records.jsonl",
            "lines.npy",
            "checks.npy",
        )
    }
    query = "waterproof jackets without a hood"
    titles = [hit.title for hit in BoolSearcher(fitted.model, fitted.index).search(query, 5)]
    train, dev = (asked_atoms(tmp_path / "fitted" / "queries" / f"{split}.jsonl") for split in ("train", "dev"))
    assert train
    assert dev
    assert not train & dev
    shutil.move(tmp_path / "fitted", tmp_path / "moved")

    assert [hit.title for hit in BoolSearcher(index=tmp_path / "moved").search(query, 5)] == titles
    # Documents come and go by their ids; the model is still the one inside of the folder.
    assert main(["index", "--remove", "P0003", "--output", str(tmp_path / "moved")]) == 0
    shutil.move(tmp_path / "moved", tmp_path / "again")
    ids = {hit.id for hit in BoolSearcher(index=tmp_path / "again").search(query, 200)}
    assert ids == {row["sku"] for row in shop} - {"P0003"}
    assert str(fitted).startswith(f"{fitted.made.dev} held-out queries")


def test_what_is_saved_lies_between_the_start_and_what_was_trained(fitted):
    import torch

    from boolbert.train.retrieval_run import move_towards

    linear = torch.nn.Linear(3, 2)
    before = {name: value.clone() for name, value in linear.state_dict().items()}
    for value in linear.state_dict().values():
        value += 1
    move_towards(linear, before, ORIGINAL_WEIGHT)
    for name, value in linear.state_dict().items():
        torch.testing.assert_close(value, before[name] + 1 - ORIGINAL_WEIGHT)
    measured = json.loads((fitted.folder / "model" / "metrics.json").read_text())["dev"]
    assert measured["ndcg@10"] == pytest.approx(fitted.after["ndcg@10"], abs=1e-6)  # of the mixed weights, both
    last = (fitted.folder / "model" / "log.jsonl").read_text().splitlines()[-1]
    assert measured["ndcg@10"] != json.loads(last)["dev/ndcg@10"]


def test_fixed_documents_keep_their_vectors_and_learned_ones_do_not(tmp_path, tiny, shop, fitted):
    from boolbert.retrieval.batches import encode_inputs
    from boolbert.retrieval.int8_encoder import int8_encoder
    from boolbert.retrieval.models import load_encoder

    start = load_encoder(str(tiny), quiet=True)
    few = {"queries": 14, "document_side": "learned"}  # every step encodes documents and goes back through them
    learned = fit(shop, tmp_path / "learned", model=tiny, say=quiet, **{**SHORT, **few})
    for found, same in ((fitted, True), (learned, False)):
        texts = [found.index[row].text for row in range(len(shop))]
        before = encode_inputs(start, texts, "document", 32)
        now = encode_inputs(found.model.encoder, texts, "document", 32)
        encode = int8_encoder(found.model.encoder, found.index.vectors.manifest["precision"], "the index")
        assert np.allclose(found.index.vectors[:], now if encode is None else encode(texts), atol=1e-5)
        assert np.allclose(before, now, atol=1e-5) == same


def test_says_how_long_it_will_take_before_it_trains(tmp_path, tiny, shop, monkeypatch):
    lines = []
    monkeypatch.setattr("boolbert.train.retrieval_run.run_retrieval", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit(shop, tmp_path / "fitted", model=tiny, say=lines.append, **SHORT)
    assert re.search(r"5 steps on \d+ queries, .* 80 documents are encoded once. About \d+ minutes? on", lines[-1])


def test_the_estimate_counts_every_query_three_times(fitted, monkeypatch):
    """Forward, and a backward pass that counts as two. Of documents there are few."""
    monkeypatch.setattr(
        "boolbert.retrieval.batches.encode_inputs", lambda model, texts, **_: time.sleep(0.01 * len(texts))
    )
    data = quest_splits(fitted.folder / "queries")
    steps, device = 2000, SimpleNamespace(device=SimpleNamespace(type="cpu"))
    minutes = int(re.search(r"About (\d+) minutes", plan(device, data.train, data.dev, steps, "fixed"))[1])
    assert minutes == pytest.approx(3 * steps * SCHEDULES["fixed"].batch_size * 0.01 / 60, rel=0.25)


def test_a_plain_encoder_is_upgraded_first(tmp_path, monkeypatch):
    from boolbert.retrieval.models import with_fresh_attention
    from boolbert.train.upgrade import Upgrade

    seeds, lines = [], []

    def upgrade(source, *, seed):
        seeds.append(seed)
        return Upgrade(with_fresh_attention(source, share=True, query_length=None, gate="cue"), {})

    monkeypatch.setattr("boolbert.train.upgrade.upgrade", upgrade)
    for _ in range(2):  # the second call finds what the first has kept
        start = fit_module.start_model(tmp_path, random_bert(), 3, lines.append)
        assert start.bert is not None
    assert seeds == [3]
    assert "plain encoder" in lines[-1]


def test_a_fit_that_was_cut_off_goes_on(tmp_path, tiny, shop, fitted, monkeypatch):
    options = {"model": tiny, "say": quiet, **SHORT}
    with monkeypatch.context() as patch:
        patch.setattr("boolbert.retrieval.index.build_index", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fit(shop, tmp_path / "cut", **options)
    with pytest.raises(BoolBertError, match="was cut off, with other flags"):
        fit(shop, tmp_path / "cut", **{**options, "epochs": 2})
    monkeypatch.setattr(fit_module, "make_queries", lambda *args, **kwargs: 1 / 0)  # not again
    assert fit(shop, tmp_path / "cut", **options).after == fitted.after
    with pytest.raises(BoolBertError, match="holds a finished fit"):
        fit(shop, tmp_path / "cut", **options)


def test_documents_that_change_between_two_calls_are_refused_before_anything_runs(tmp_path, tiny, monkeypatch):
    """Else the index would hold other documents than the queries and the figures are of."""
    file = write_products(tmp_path / "products.csv", 80)
    options = {"model": tiny, "say": quiet, **SHORT}
    with monkeypatch.context() as patch:
        patch.setattr("boolbert.train.retrieval_run.run_retrieval", lambda *args, **kwargs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fit(file, tmp_path / "cut", **options)
    before = file.read_text(encoding="utf-8")
    monkeypatch.setattr(fit_module, "start_model", lambda *args: pytest.fail("it went on"))
    for changed in (before.replace("hood", "cape"), before.rsplit("\n", 2)[0] + "\n", before + before.splitlines()[-1]):
        file.write_text(changed, encoding="utf-8")
        with pytest.raises(BoolBertError, match=r"products\.csv: its documents have changed since queries were made"):
            fit(file, tmp_path / "cut", **options)
    file.write_text(before, encoding="utf-8")
    with pytest.raises(pytest.fail.Exception):
        fit(file, tmp_path / "cut", **options)


def test_documents_that_change_during_training_are_refused(tmp_path, tiny, monkeypatch):
    file = write_products(tmp_path / "products.csv", 80)
    monkeypatch.setattr("boolbert.train.retrieval_run.run_retrieval", lambda *_, **__: write_products(file, 90))
    monkeypatch.setattr("boolbert.retrieval.models.load_model", lambda name, load=load_model: load(tiny))
    with pytest.raises(BoolBertError, match="its documents have changed"):
        fit(file, tmp_path / "cut", model=tiny, say=quiet, **{**SHORT, "document_side": "learned"})
    assert not (tmp_path / "cut" / "index.json").exists()


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ({}, None),
        ({"mrr@10": 0.4996}, None),  # the same in three digits
        (
            {"recall@100": 0.4, "negated": 0.6},
            "Recall@100 and excluded in the top R than before; --original_weight 0.85",
        ),
        ({"r_precision": 0.4, "negated": 0.1}, "worse in R-precision than before; look at what it"),
    ],
)
def test_the_table_says_where_training_made_it_worse_and_what_to_do(tmp_path, fitted, after, line):
    made = replace(fitted.made, dev=50)
    before = dict.fromkeys(fit_module.SHOWN, 0.5)
    notes = fit_module.notes_of(tmp_path, made, before, {**before, **after}, original_weight=0.7)
    table = str(replace(fitted, made=made, before=before, after={**before, **after}, notes=notes))
    assert ("note: " in table) == (line is not None)
    assert line is None or line in table


@pytest.mark.parametrize(
    ("documents", "line"),
    [
        ([f"document {number} about tents" for number in range(10)], "10 documents are too few"),
        (["红色的帐篷适合夏天"] * 40, "no queries can be made"),
    ],
)
def test_where_no_queries_can_be_made_nothing_is_left_behind(tmp_path, documents, line):
    with pytest.raises(BoolBertError, match=line):
        fit(documents, tmp_path / "fitted", say=quiet)
    assert not (tmp_path / "fitted").exists()


def test_small_and_repeated_one_line_documents_work(tmp_path, tiny):
    rows = [row[2].split(".")[0] for row in products(60)]
    fitted = fit([*rows, *rows[:20]], tmp_path / "fitted", model=tiny, say=quiet, **SHORT)
    assert len(fitted.index) == 80
    assert any("documents repeat an earlier one" in note for note in fitted.made.notes)
    assert any("held-out queries are too few" in note for note in fitted.notes)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--documents", "frozen"], "--documents must be fixed or learned, got 'frozen'"),
        (["--epochs", "0"], "--epochs must be at least 1, got 0"),
        (["--original_weight", "1.5"], "--original_weight must be at least 0 and below 1, got 1.5"),
        (["--output_dir", "."], "holds files already; give a new folder"),
    ],
)
def test_a_wrong_flag_is_one_line_at_once(tmp_path, flags, line, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_products(tmp_path / "products.csv", 30)
    assert main(["fit", "products.csv", *flags]) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def readme_commands():
    text = (Path(boolbert.__file__).parent / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Your own documents\n")[2].partition("\n## ")[0]
    return [shlex.split(line, comments=True) for line in section.splitlines() if line.startswith("    boolbert ")]


@pytest.mark.long
def test_the_readme_goes_from_a_csv_to_a_search_that_obeys_not(tmp_path, monkeypatch, capsys):
    """With the real encoder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("boolbert.data.own.exclusions.QUERIES", 150)  # a quarter of the time
    write_products(tmp_path / "products.csv", 100)
    index, search, calibrate, search_by_promise = readme_commands()
    assert main(index[1:]) == 0
    capsys.readouterr()
    hooded = []
    for operators in ([], ["--operators", "none"]):
        assert main([*search[1:], "--json", *operators]) == 0
        hits = json.loads(capsys.readouterr().out)["hits"]
        assert len(hits) == 10
        hooded.append(sum("hood" in hit["text"] for hit in hits))
    assert hooded[0] < hooded[1]
    assert main(calibrate[1:]) == 0
    capsys.readouterr()
    assert main([*search_by_promise[1:], "--json"]) == 0
    promise = json.loads(capsys.readouterr().out)["promise"]
    assert promise["violations"] == 0.05


@pytest.mark.long
def test_the_command_fits_the_real_encoder_and_shows_what_it_gave(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_products(tmp_path / "products.csv", 60)
    assert main(["fit", "products.csv", "--output_dir", "my_shop", "--queries", "70", "--epochs", "1"]) == 0
    assert re.search(r"R-precision +\.\d+ +\.\d+", capsys.readouterr().out)
    assert main(["search", "waterproof jackets without a hood", "--index", "my_shop", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["hits"]) == 10
