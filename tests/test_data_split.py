"""A dev split held out of a folder's training queries."""

import gzip
import json

import pytest

from boolbert.data import DataError, Quest
from boolbert.data.split import main, split_folder


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "quest"
    path.mkdir()
    rows = [{"query": f"q{i} é", "docs": ["d"], "metadata": {"template": "_"}} for i in range(20)]
    with gzip.open(path / "train.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (path / "documents.jsonl").write_text(json.dumps({"title": "d", "text": "a document"}) + "\n")
    (path / "atoms.json").write_text('{"all": [0]}')
    return path


def test_rows_are_shared_out_and_none_is_lost(tmp_path, folder, capsys):
    main([str(folder), "--output", str(tmp_path / "out"), "--dev", "0.25"])
    assert "15 training and 5 dev queries" in capsys.readouterr().out
    before, after = Quest(folder), Quest(tmp_path / "out")
    train, dev = ([query.query for query in after.queries(split)] for split in ("train", "dev"))
    assert (len(train), len(dev)) == (15, 5)
    assert sorted(train + dev) == sorted(query.query for query in before.queries("train"))
    assert after.atoms is not None
    assert len(after.corpus) == 1


def test_the_seed_decides(tmp_path, folder):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        split_folder(folder, tmp_path / name, seed=seed)
    texts = {name: (tmp_path / name / "dev.jsonl").read_text() for name in "abc"}
    assert texts["a"] == texts["b"] != texts["c"]


@pytest.mark.parametrize("dev", [0.0, 1.0, 0.99])
def test_a_split_must_not_be_empty(tmp_path, folder, dev):
    with pytest.raises(DataError, match=r"train.jsonl.gz: --dev: a share of .* must leave rows on both sides"):
        split_folder(folder, tmp_path / "out", dev=dev)


def test_bad_places(tmp_path, folder):
    with pytest.raises(DataError, match="no such folder"):
        split_folder(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(DataError, match="exists and is not empty"):
        split_folder(folder, folder)
    (folder / "train.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match=r"found train\.jsonl, train\.jsonl\.gz"):
        split_folder(folder, tmp_path / "out")
