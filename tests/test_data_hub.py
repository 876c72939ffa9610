"""The Hub's way of reading, through `datasets`, on local folders that the library loads in the same manner."""

import json

import pytest

datasets = pytest.importorskip("datasets")

from boolbert.data import BoolQuestions, DataError, Document, Quest, read_triplets  # noqa: E402
from boolbert.data.sources import HubSource, LocalSource, open_source  # noqa: E402

DOCUMENTS = [{"title": "Alien", "text": "A film."}, {"title": "Dune", "text": "A novel."}]
QUERIES = [
    {"query": "films", "docs": ["Alien"], "metadata": {"template": "_", "relevance_ratings": {"Alien": ["yes"]}}},
    {"query": "novels", "docs": ["Dune"], "metadata": {"template": "_", "relevance_ratings": {"Dune": ["yes"]}}},
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def parquet(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    datasets.Dataset.from_list(rows).to_parquet(path)


def jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(("write", "ending"), [(parquet, "parquet"), (jsonl, "jsonl")])
def test_quest_through_datasets(tmp_path, write, ending):
    write(tmp_path / f"documents.{ending}", DOCUMENTS)
    write(tmp_path / f"train.{ending}", QUERIES)
    write(tmp_path / f"validation.{ending}", QUERIES[:1])
    (tmp_path / "atoms.json.gz").write_bytes(__import__("gzip").compress(b'{"film": [0]}'))
    source = HubSource(str(tmp_path))
    assert sorted(source.tables()) == ["documents", "train", "validation"]
    quest = Quest(source)
    assert list(quest.corpus) == [Document(**row) for row in DOCUMENTS]
    assert [(query.query, query.docs, query.operators) for query in quest.queries("train")] == [
        ("films", ("Alien",), ()),
        ("novels", ("Dune",), ()),
    ]
    assert len(quest.queries("dev")) == 1
    assert quest.gold("train")[1].tolist() == [1]
    assert quest.atoms["film"].tolist() == [0]


def test_a_folder_is_read_by_this_project_where_it_can_be_and_by_datasets_elsewhere(tmp_path):
    jsonl(tmp_path / "own" / "train.jsonl", QUERIES)
    parquet(tmp_path / "theirs" / "train.parquet", QUERIES)
    assert isinstance(open_source(tmp_path / "own"), LocalSource)
    assert isinstance(open_source(tmp_path / "theirs"), HubSource)
    assert Quest(tmp_path / "own").queries("train") == Quest(tmp_path / "theirs").queries("train")


def test_configurations_as_boolquestions_publishes_them(tmp_path):
    question = {"qid": "q1", "question": "cats or dogs", "question_type": "or"}
    question |= {"positive_ctxs": [{"passage_id": "p1"}], "negative_ctxs": [{"passage_id": "p2"}]}
    jsonl(tmp_path / "MSMARCO" / "eval.json", [question])
    jsonl(tmp_path / "MSMARCO" / "corpus.jsonl", [{"docid": f"p{i}", "doc": f"passage {i}"} for i in (1, 2)])
    (tmp_path / "README.md").write_text("""---
configs:
- config_name: MSMARCO
  data_files: [{split: eval, path: MSMARCO/eval.json}]
- config_name: MSMARCO-corpus
  data_files: [{split: corpus, path: MSMARCO/corpus.jsonl}]
---
""")
    source = HubSource(str(tmp_path))
    assert source.tables() == ["MSMARCO/eval", "MSMARCO-corpus/corpus"]
    data = BoolQuestions(source)
    questions = data.questions("eval")
    assert [question.operator for question in questions] == ["or"]
    assert data.gold(questions)[0].tolist() == [0]
    assert data.negatives(questions)[0].tolist() == [1]


def test_triplets_and_the_place_of_a_fault(tmp_path):
    good = {"G": "a and b", "P": ["b and a"], "N": ["a"]}
    parquet(tmp_path / "train.parquet", [good, {**good, "N": []}])
    with pytest.raises(DataError, match=rf"^{tmp_path} train row 2: field 'N' must hold at least one sentence$"):
        list(read_triplets(tmp_path))


def test_names_that_are_nowhere(tmp_path):
    with pytest.raises(DataError) as error:
        open_source("nobody/nothing-of-this-name")
    assert str(error.value).startswith(
        "nobody/nothing-of-this-name: no such file or folder here, and the Hub gives no data set of that name: "
    )
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match=r"holds no .jsonl or .json file, nor can `datasets` load it"):
        open_source(tmp_path)


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(
        DataError, match=r"owner/name: reading it needs the datasets library: pip install 'boolbert\[hub\]'"
    ):
        HubSource("owner/name")


def test_atoms_of_a_hub_data_set(tmp_path, monkeypatch):
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError

    jsonl(tmp_path / "train.jsonl", QUERIES)
    source = HubSource(str(tmp_path))
    source.name = "owner/name"
    there = {"atoms.json.gz": "cached/atoms.json.gz"}

    def download(name, file, repo_type):
        assert (name, repo_type) == ("owner/name", "dataset")
        if file not in there:
            raise EntryNotFoundError(file)
        return there[file]

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert str(source.atoms_path()) == "cached/atoms.json.gz"
    there.clear()
    assert source.atoms_path() is None
