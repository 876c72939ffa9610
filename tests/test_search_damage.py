"""An index on disk, true to its documents; search with what is damaged, misplaced or in use by another thread: one line
or the right answer, no file lost."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from search_fixtures import TEXTS, write_documents
from sentence_helpers import embed, plain_bert, write_dual
from store_fixtures import skip_without

from boolbert.cli import main
from boolbert.core.errors import BoolBertError
from boolbert.data import DataError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.encode import encode_corpus
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.retrieval.fingerprints import model_fingerprint
from boolbert.retrieval.models import load_encoder
from boolbert.retrieval.stores import FileStore
from boolbert.search import BoolSearcher, Index, build_index, explain, load_model
from boolbert.serve.engine import Engine


@pytest.fixture
def model_folder(tmp_path, run_once):
    return shutil.copytree(run_once(), tmp_path / "model")


@pytest.fixture
def model(run_once, load_once):
    return load_once(run_once())


@pytest.fixture
def index(tmp_path, model):
    return build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", model, progress=False)


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["any_name.jsonl", "documents.jsonl.gz"])
def test_holds_every_document_and_its_vector(tmp_path, model, lively, tiny_config, tokenizer, name):
    build_index(write_documents(tmp_path / name), tmp_path / "index", model, progress=False)
    index = Index(tmp_path / "index")
    assert len(index) == len(TEXTS)
    assert [index[row].text for row in range(len(index))] == TEXTS
    assert index[7].title == "Doc 7 é"
    assert index.model == model.name
    assert index.fits(model)
    slow = embed(plain_bert(lively, tiny_config), tokenizer, TEXTS, "mean", "cosine")
    np.testing.assert_allclose(index.vectors[:], slow, atol=1e-5)


def test_building_again_gives_the_same_and_another_corpus_is_refused(tmp_path, model):
    docs = write_documents(tmp_path / "docs.jsonl")
    first = build_index(docs, tmp_path / "index", model, progress=False).manifest
    assert build_index(docs, tmp_path / "index", model, progress=False).manifest == first
    docs.write_text(docs.read_text() + json.dumps({"title": "more", "text": "war"}) + "\n")
    with pytest.raises(ValueError, match="the corpus has changed"):
        build_index(docs, tmp_path / "index", model, progress=False)


def test_missing_and_mixed_indexes_are_told(tmp_path, index):
    with pytest.raises(ValueError, match=r"no index there .* boolbert index"):
        Index(tmp_path / "nowhere")
    manifest = index.folder / "index.json"
    manifest.write_text(manifest.read_text().replace(index.manifest["corpus"], "0" * 16))
    with pytest.raises(ValueError, match="do not belong together"):
        Index(index.folder)


def test_a_file_of_queries_is_no_collection(tmp_path, model):
    (tmp_path / "train.jsonl").write_text('{"query": "a", "docs": ["b"]}\n')
    with pytest.raises(DataError, match="holds queries; expected documents"):
        build_index(tmp_path / "train.jsonl", tmp_path / "index", model, progress=False)
    (tmp_path / "bad.jsonl").write_text('{"title": "a", "text": "b"}\n{"title": "c", "text": {"d": 1}}\n')
    with pytest.raises(DataError, match=r"bad.jsonl:2: field 'text' must be a text, got dict"):
        build_index(tmp_path / "bad.jsonl", tmp_path / "index", model, progress=False)


@pytest.mark.parametrize("name", ["documents.jsonl", "mine.jsonl", ""])
def test_an_index_over_or_beside_its_source_is_refused(tmp_path, model, name):
    data = tmp_path / "data"
    data.mkdir()
    write_documents(data / (name or "documents.jsonl"))
    before = files(data)
    (tmp_path / "link").symlink_to(data)
    for output in (data, data / ".", tmp_path / "model" / ".." / "data", tmp_path / "link"):
        with pytest.raises(BoolBertError, match="holds the documents that are to be indexed; give a folder of its own"):
            build_index(data / name, output, model, progress=False)
    assert files(data) == before
    assert len(build_index(data / name, data / "index", model, progress=False)) == len(TEXTS)
    assert files(data).items() >= before.items()


@pytest.mark.parametrize("name", ["documents.jsonl", "index.json", "lines.npy", "vectors/vectors-00000.npy"])
def test_a_file_that_no_index_wrote_is_never_replaced(tmp_path, model, name):
    docs = write_documents(tmp_path / "docs.jsonl")
    mine = tmp_path / "folder" / name
    mine.parent.mkdir(parents=True)
    mine.write_text('{"title": "mine", "text": "mine"}\n')
    with pytest.raises(BoolBertError, match=r"was not written by this .*; give another folder"):
        build_index(docs, tmp_path / "folder", model, progress=False)
    assert files(tmp_path / "folder") == {mine: b'{"title": "mine", "text": "mine"}\n'}


def test_a_foreign_file_in_a_build_that_was_cut_off(tmp_path, model):
    """The vectors are there, then somebody puts a documents.jsonl of their own beside them."""
    docs = write_documents(tmp_path / "docs.jsonl")
    encode_corpus(model.encoder, OwnDocuments(docs).corpus(), tmp_path / "index/vectors", progress=False)
    (tmp_path / "index/documents.jsonl").write_text("mine\n")
    with pytest.raises(BoolBertError, match=r"documents.jsonl: is there already"):
        build_index(docs, tmp_path / "index", model, progress=False)
    assert (tmp_path / "index/documents.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("name", "optional"), [("index.json", {"fields", "columns"}), ("vectors/manifest.json", {"precision"})]
)
def test_a_manifest_without_a_key_or_of_another_kind(index, name, optional):
    file = index.folder / name
    content = json.loads(file.read_text())
    for key in sorted(content.keys() - {"model", "source", "checks", "records"}):
        without = {other: content[other] for other in content if other != key}
        values = (["year"], 8) if key in optional else (None, [], -1, True, {})
        for changed in (*({**content, key: value} for value in values), *([] if key in optional else [without])):
            file.write_text(json.dumps(changed))
            with pytest.raises(BoolBertError, match=f"{name}: field '{key}' is missing or wrong"):
                Index(index.folder)
        if key in optional:
            file.write_text(json.dumps(without))
            assert len(Index(index.folder)) == len(index)
    if "precision" in optional:
        file.write_text(json.dumps({**content, "precision": "int4"}))
        with pytest.raises(BoolBertError, match="field 'precision' must be float32 or int8"):
            Index(index.folder)
    for other in ("[]", "3", "", "{}", "[" * 99_999):
        file.write_text(other)
        with pytest.raises(BoolBertError, match=name):
            Index(index.folder)


@pytest.mark.parametrize("keep", [0, 60, -1])
@pytest.mark.parametrize("name", ["vectors/vectors-00000.npy", "documents.jsonl", "lines.npy"])
def test_a_damaged_file_is_told_and_indexing_again_repairs_it(tmp_path, index, model, name, keep):
    before = files(index.folder)
    path = index.folder / name
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BoolBertError, match=r"index again|encode again"):
        Index(index.folder)
    build_index(tmp_path / "docs.jsonl", index.folder, model, progress=False)
    assert files(index.folder) == before


def test_a_document_that_was_changed_in_place(index):
    path = index.folder / "documents.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"title"', b"'title'", 1))
    with pytest.raises(BoolBertError, match="document 0 is damaged; index again"):
        Index(index.folder)[0]


@pytest.mark.parametrize("value", [0, -5])
@pytest.mark.parametrize("name", ["shard_size", "batch_size"])
def test_sizes_below_one(tmp_path, model, name, value):
    corpus = OwnDocuments(write_documents(tmp_path / "docs.jsonl")).corpus()
    with pytest.raises(BoolBertError, match=f"{name} must be a whole number of at least 1, got {value}"):
        encode_corpus(model.encoder, corpus, tmp_path / "vectors", **{name: value})
    assert not (tmp_path / "vectors").exists()


def test_explain_and_search_at_once_give_what_each_gives_alone(index, model):
    searcher = BoolSearcher(model, index)
    queries = ["films", "films but not about war", "a and b or c", "books " * 50, "war as well as films that are not a"]

    def ask(number):
        query = queries[number % len(queries)]
        if number % 3:
            return [(hit.row, hit.score) for hit in searcher.search(query, 5)]
        return explain(searcher, query, 5).as_json()

    alone = [ask(number) for number in range(15)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(ask, range(60)))
    assert together == alone * 4


def change(file, **values):
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def configured(**values):
    return lambda file: change(file.with_name("config.json"), **values)


DAMAGE = {
    "cut short": (lambda file: file.write_bytes(file.read_bytes()[:-10]), "is damaged, or no safetensors file"),
    "empty": (lambda file: file.write_bytes(b""), "is damaged, or no safetensors file"),
    "no tokenizer": (lambda file: file.with_name("tokenizer.json").unlink(), "tokenizer.json is missing"),
    "no words": (lambda file: change_words(file, 5), "its tokenizer knows no words; is tokenizer.json the right one"),
    "more words": (lambda file: change_words(file, more=64), "its tokenizer has 65 tokens, its model 64"),
    "broken tokenizer": (lambda file: file.with_name("tokenizer.json").write_text("{"), "cannot be loaded"),
    "more layers said than there are": (
        configured(num_hidden_layers=4),
        "num_hidden_layers is 4, and its weights have 2",
    ),
    "fewer layers said than there are": (
        configured(num_hidden_layers=1),
        "num_hidden_layers is 1, and its weights have 2",
    ),
    "config of another size": (configured(hidden_size=24), "hidden_size is 24, and its weights have 16"),
    "config, a list": (lambda file: file.with_name("config.json").write_text("[]"), "expected a JSON object"),
}


def change_words(file, first=None, **more):
    """Another vocabulary: the first words, or more of them."""
    content = json.loads(file.with_name("tokenizer.json").read_text())
    words = sorted(content["model"]["vocab"].items(), key=lambda item: item[1])[:first]
    content["model"]["vocab"] = {**dict(words), **more}
    file.with_name("tokenizer.json").write_text(json.dumps(content))


@pytest.mark.parametrize("part", ["", "document_encoder"])
@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_model_is_told_in_one_line(model_folder, damage, message, part):
    damage(model_folder / part / "model.safetensors")
    with pytest.raises(BoolBertError, match=message) as error:
        load_model(model_folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["{}", "[3]", '[{"type": 3, "path": ""}]', '[{"path": ""}]', "3"])
def test_odd_module_lists(model_folder, content):
    (model_folder / "modules.json").write_text(content)
    with pytest.raises(BoolBertError, match=r"modules.json: "):
        resolve_encoder(str(model_folder))


@pytest.mark.parametrize("device", ["nonsense", "meta", "cuda:99", *([] if torch.cuda.is_available() else ["cuda"])])
def test_a_device_that_is_not_there(model_folder, device):
    with pytest.raises(BoolBertError, match=f"device '{device}' cannot be used here: .*; try cpu"):
        load_model(model_folder, device=device)


def fingerprint(folder, task="document"):
    return model_fingerprint(load_encoder(str(folder), quiet=True, device="cpu"), task)


@pytest.mark.parametrize(
    ("file", "changes", "is_same"),
    [
        ("config.json", {"num_attention_heads": 1}, False),
        ("config.json", {"hidden_act": "relu"}, False),
        ("config.json", {"layer_norm_eps": 0.1}, False),
        ("tokenizer_config.json", {"do_lower_case": False}, False),
        ("config.json", {"hidden_dropout_prob": 0.5, "_name_or_path": "/x", "use_cache": True}, True),
    ],
)
def test_the_fingerprint_knows_what_shapes_vectors(tmp_path, lively, tiny_config, tokenizer, file, changes, is_same):
    """Also what the weights do not tell."""
    write_dual(tmp_path, lively, tiny_config, tokenizer)
    before = fingerprint(tmp_path), fingerprint(tmp_path, "query")
    change(tmp_path / "document_encoder" / file, **changes)
    assert (fingerprint(tmp_path) == before[0]) == is_same
    assert fingerprint(tmp_path, "query") == before[1]


def test_a_run_with_untouched_documents_keeps_the_index(tmp_path, lively, tiny_config, tokenizer):
    for seed in (1, 2):
        write_dual(tmp_path / str(seed), lively, tiny_config, tokenizer, seed=seed)
    assert fingerprint(tmp_path / "1") == fingerprint(tmp_path / "2")
    assert fingerprint(tmp_path / "1", "query") != fingerprint(tmp_path / "2", "query")
    model = load_encoder(str(tmp_path / "1"), quiet=True, device="cpu")
    model.encode_document(["films"])  # sets how its tokenizer pads
    assert model_fingerprint(model, "document") == fingerprint(tmp_path / "1")


def change_text(folder):
    file = folder / "documents.jsonl"
    file.write_bytes(file.read_bytes().replace(b"films about war", b"films about bar"))


def swap_lines(folder):
    file = folder / "documents.jsonl"
    one, other, *rest = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([other, one, *rest]))


def change_record(folder):
    file = folder / "records.jsonl"
    file.write_bytes(file.read_bytes().replace(b"Doc 1", b"Doc 2", 1))


def change_place(folder):
    file = folder / "lines.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 0x80
    file.write_bytes(content)


CHANGES = {"a text": change_text, "two lines": swap_lines, "a record": change_record, "a place": change_place}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_keeps_the_size_is_noticed_when_it_is_read(index, model, name):
    """In the index itself, and in the same folder as a store."""
    CHANGES[name](index.folder)
    kinds = [FileStore] if name == "a record" else [FileStore, Index]  # an index shows no ids
    for kind in kinds:
        with pytest.raises(BoolBertError, match="damaged"):
            BoolSearcher(model, kind(index.folder)).search("films about war", len(TEXTS))


def test_an_index_of_an_earlier_version_has_no_check_sums(index, model):
    file = index.folder / "index.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({name: content[name] for name in content.keys() - {"checks", "records"}}))
    (index.folder / "checks.npy").unlink()
    assert len(BoolSearcher(model, Index(index.folder)).search("films", 3)) == 3
    change_place(index.folder)
    with pytest.raises(BoolBertError, match="damaged"):
        BoolSearcher(model, Index(index.folder)).search("films", len(TEXTS))


def test_an_open_searcher_sees_the_first_change_of_its_index(tmp_path, index, model, run_once, capsys):
    """So does the page, which has one."""
    searcher = BoolSearcher(model, index)
    engine = Engine(lambda: (searcher, None))
    everything = {hit.title for hit in searcher.search("films about war", len(TEXTS))}
    gone = searcher.search("films about war", 1)[0].title
    assert main(["index", "--remove", gone, "--output", str(index.folder)]) == 0
    assert {hit.title for hit in searcher.search("films about war", 99)} == everything - {gone}
    assert {change.hit.title for change in engine.search("films about war", len(TEXTS)).after} == everything - {gone}
    (tmp_path / "more.jsonl").write_text(json.dumps({"title": gone, "text": "books"}))
    more = ["index", str(tmp_path / "more.jsonl"), "--add", "--output", str(index.folder), "--model", str(run_once())]
    assert main(more) == 0
    assert {hit.title for hit in searcher.search("films about war", 99, evidence=False)} == everything


def test_a_mistyped_store_is_not_made(tmp_path, capsys):
    skip_without("milvus")
    for command in (["search", "a"], ["index", "--remove", "a"], ["index", "a.csv", "--add"]):
        assert main([*command, "--store", "flims.db"]) == 2
        assert "flims.db: no store there; make one with: boolbert index" in capsys.readouterr().err
        assert not (tmp_path / "flims.db").exists()
    with pytest.raises(BoolBertError, match="no store there"):
        BoolSearcher(index="flims.db")


@pytest.mark.parametrize("part", ["", "document_encoder"])
@pytest.mark.parametrize(
    ("name", "size"),
    [("num_hidden_layers", 10**6), ("vocab_size", 2**31), ("intermediate_size", 10**9), ("hidden_size", "many")],
)
def test_a_configuration_of_other_sizes_is_told_before_a_model_is_made(model_folder, part, name, size):
    file = model_folder / part / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), name: size}))
    with pytest.raises(BoolBertError, match=rf"config\.json: {name} is {size!r}, and its weights have \d+"):
        load_model(model_folder)
