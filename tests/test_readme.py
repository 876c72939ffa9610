"""The README's code runs as it stands. The published model's name is read as a folder with a small model in it."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from transformers import AutoTokenizer, BertModel

import boolbert
from boolbert import BoolBertModel
from boolbert.sentence_boolbert import save_dual_encoder

README = Path(boolbert.__file__).parent / "README.md"
PUBLISHED = "org/bool-bert-base"
FRAMEWORKS = ("langchain_core", "llama_index", "haystack")


def code_blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def published(tmp_path, pretrained_bert):
    """A folder as `hub_upload.py` would publish it, of one layer."""
    query = BoolBertModel.from_pretrained(pretrained_bert, num_hidden_layers=1, pooling="mean")
    document = BertModel.from_pretrained(pretrained_bert, num_hidden_layers=1)
    tokenizer = AutoTokenizer.from_pretrained(pretrained_bert)
    save_dual_encoder(tmp_path / "published", query, document, tokenizer, pooling="mean", similarity="cosine")
    return str(tmp_path / "published")


@pytest.mark.parametrize("number", range(len(code_blocks("python"))))
def test_code_block(number, published, tmp_path, monkeypatch, capsys):
    """The blocks of the frameworks go on where the one with their encoder ends, and find the same hotel."""
    blocks = code_blocks("python")
    code = blocks[number]
    if missing := [name for name in FRAMEWORKS if f"from {name}" in code and find_spec(name) is None]:
        pytest.skip(f"NOT TESTED: README.md, block {number + 1}: {missing[0]} is missing; make test-frameworks")
    monkeypatch.chdir(tmp_path)
    is_framework = any(f"from {name}" in code for name in FRAMEWORKS)
    if is_framework:
        code = next(block for block in blocks if "encoder = obey(" in block) + code
    code = code.replace(PUBLISHED, published)
    exec(compile(code, f"README.md, block {number + 1}", "exec"), {})
    shown = capsys.readouterr().out.strip().splitlines()
    assert shown
    if is_framework:
        assert "There is no pool" in shown[-1]
        assert "large pool" not in shown[-1]


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_what_the_examples_find_is_right(tmp_path):
    """Asked of the model that ships: no monarchy, and Iceland before Tonga, by one vector and by parts."""
    from boolbert.retrieval.models import default_model
    from boolbert.search import BoolSearcher

    model = default_model("cpu")
    model.encoder.save(str(tmp_path / "model"))
    search, vectors = (
        next(block for block in code_blocks("python") if name in block) for name in (".search(", "encode_document")
    )
    query, k = re.search(r'\.search\("(.+?)", k=(\d+)\)', search).groups()
    assert [hit.violates for hit in BoolSearcher(model, progress=False).search(query, k=int(k))] == [False] * int(k)
    found = {}
    exec(vectors.replace(PUBLISHED, str(tmp_path / "model")), found)
    one = (found["queries"] @ found["documents"].T)[0]
    query = re.search(r'encode_query\(\["(.+?)"\]\)', vectors)[1]
    for scores in (one, found["model"].encode_query_parts(query).scores(found["documents"])):
        assert ["republic", "monarchy"][scores.argmax()] == "republic"
