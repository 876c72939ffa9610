"""The README's code runs as it stands. The published model's name is read as a folder with a small model in it."""

import re
from pathlib import Path

import pytest

import boolbert

README = Path(boolbert.__file__).parent / "README.md"
PUBLISHED = "org/bool-bert-base"


def code_blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def published(tmp_path, pretrained_bert):
    """A folder as `hub_upload.py` would publish it, of one layer."""
    from transformers import AutoTokenizer, BertModel

    from boolbert import BoolBertModel
    from boolbert.sentence_boolbert import save_dual_encoder

    query = BoolBertModel.from_pretrained(pretrained_bert, num_hidden_layers=1, pooling="mean")
    document = BertModel.from_pretrained(pretrained_bert, num_hidden_layers=1)
    tokenizer = AutoTokenizer.from_pretrained(pretrained_bert)
    save_dual_encoder(tmp_path / "published", query, document, tokenizer, pooling="mean", similarity="cosine")
    return str(tmp_path / "published")


@pytest.mark.parametrize("number", range(len(code_blocks("python"))))
def test_code_block(number, published, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = code_blocks("python")[number].replace(PUBLISHED, published)
    exec(compile(code, f"README.md, block {number + 1}", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
