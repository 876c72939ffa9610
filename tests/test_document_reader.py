"""The document reader: which sentences it sees, what it says of texts by authors that it has not learned from."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from boolbert import says
from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import BoolBertError
from boolbert.data.trades import FOLDER
from boolbert.eval import saying
from boolbert.eval.searched import TextIndex
from boolbert.retrieval import document_reader as module
from boolbert.retrieval.document_reader import (
    DocumentReader,
    Passage,
    RememberingTokenizer,
    Said,
    document_reader,
    passage,
    sentences_of,
)
from boolbert.retrieval.models import default_model
from boolbert.search.searcher import BoolSearcher
from boolbert.train.document_labels import turned
from boolbert.train.document_reader import mean_of

LIST = (
    "The shed holds "
    + ", ".join([f"a tin of paint number {n}" for n in range(30)] + ["two iron rakes", "a rope"])
    + "."
)


def test_of_a_long_list_the_item_is_read_that_has_the_words():
    clauses = [(one.start, one.end) for one in split_clauses(LIST)]
    near = np.linspace(0.3, 0.2, len(clauses))  # by cosines alone the first item would be read
    found = passage("iron rakes", LIST, clauses, near)
    assert ["iron rakes" in LIST[start:end] for start, end in found.sentences] == [True]
    assert len(LIST[slice(*found.sentences[0])]) < 100


def test_of_a_long_list_all_items_are_read_that_a_question_names():
    clauses = [(one.start, one.end) for one in split_clauses(LIST)]
    found = passage("which shed holds paint number 17 and iron rakes?", LIST, clauses, np.full(len(clauses), 0.2))
    read = [LIST[start:end] for start, end in found.sentences]
    assert any("iron rakes" in piece for piece in read)
    assert any("paint number 17" in piece for piece in read)
    assert len(read) <= 3  # the others say no word more


@pytest.mark.parametrize(
    ("text", "has", "lacks"),
    [
        ("Sugar-free chocolate bar with stevia.", False, True),
        ("Chocolate bar with 45 g of sugar per 100 g.", True, False),
        ("Caramel bar, made with cane sugar and cream.", True, False),
        ("Protein bar without any sugar.", False, True),
    ],
)
def test_sugar_and_sugar_free_are_told_apart(text, has, lacks):
    for condition, expected in (("sugar", has), ("sugar-free", lacks)):
        (one,) = says([text], condition)
        assert (one.affirms > one.denies) == expected, (condition, one)


@pytest.mark.long
def test_near_misses_of_an_author_whom_it_has_not_seen_are_told_apart(capsys):
    saying.main(["--statements", str(FOLDER / "statements" / "dev"), "--labels", "200"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["near", "questions"]
    rest = [float(line.split("against the rest ")[1].split(",")[0]) for line in lines]
    assert min(rest) > 0.74  # .72 and .65 before such statements were learned


def test_a_folder_without_statements_is_one_line(tmp_path):
    with pytest.raises(BoolBertError, match=f"{tmp_path}: holds no statements"):
        saying.main(["--statements", str(tmp_path)])


def test_the_mean_of_adapters(tmp_path):
    files = []
    for number, value in enumerate((1.0, 2.0, 6.0)):
        save_file({"head": torch.full((2,), value).half()}, tmp_path / f"{number}.safetensors")
        files.append(str(tmp_path / f"{number}.safetensors"))
    assert mean_of(files)["head"].tolist() == [3.0, 3.0]


def test_a_condition_is_turned_round_in_words_that_people_use():
    class First:
        def choice(self, of):
            return of

    assert turned("a pool", First()) == ["no pool", "without a pool", "not a pool", "pool-free"]
    assert turned("a wet room", First()) == ["no wet room", "without a wet room", "not a wet room"]


def test_what_is_not_read_has_its_reason_in_the_nearest_clause():
    model = default_model("cpu")
    wanted = "cakes that my grandmother from Vienna baked in winter for us children"
    texts = ["A cake that my grandmother baked in Vienna each winter for us children. No nuts.", "Tyres. No nuts."]
    held = TextIndex(texts, model, progress=False)
    (hit,) = BoolSearcher(model, held.index, onnx=True).search(f"{wanted}, without nuts", 1)
    assert hit.text == texts[0]
    assert {reason.says for reason in hit.reasons} == {"for", "denied"}
    clauses = {reason.says: reason.clause for reason in hit.reasons}
    assert "grandmother" in clauses["for"]
    assert "No nuts" in clauses["denied"]


TEXT = "Quiet rooms. The lake was drained. Bring a towel."
FIRST, SECOND, THIRD = sentences_of(TEXT)


class Told(DocumentReader):
    """Reads of each sentence alone what it is told, and keeps what it was asked."""

    def __init__(self, told):
        super().__init__(document_reader()._reader)
        self.told, self.asked = told, []

    def read(self, passages):
        self.asked += [one.sentences for one in passages]
        return [self.told[one.sentences[0]] for one in passages]


YES, NO, NOTHING = Said(0.9, 0.0, 0.1), Said(0.0, 0.8, 0.2), Said(0.1, 0.1, 0.8)


@pytest.mark.parametrize(
    ("told", "whole", "expected"),
    [
        ([NOTHING, NO, NOTHING], NO, SECOND),  # another sentence says it by itself
        ([NOTHING, YES, NOTHING], NO, FIRST),  # it says the opposite, so that what stood out stays
        ([NOTHING, NOTHING, NOTHING], NO, FIRST),
        ([NO, Said(0.0, 0.99, 0.0), NOTHING], NO, FIRST),  # what stood out says it, too
        ([NOTHING, NOTHING, YES], YES, THIRD),
    ],
)
def test_the_reason_is_a_sentence_that_says_it_by_itself(told, whole, expected):
    reader = Told(dict(zip((FIRST, SECOND, THIRD), told, strict=True)))
    asked = Passage("a lake", TEXT, [FIRST, SECOND, THIRD])
    (found,) = reader.with_plain_sentences([asked], [whole._replace(start=FIRST[0], end=FIRST[1])])
    assert found == whole._replace(start=expected[0], end=expected[1])


def test_only_what_is_doubtful_is_read_sentence_by_sentence():
    reader = Told({FIRST: NOTHING, SECOND: NO, THIRD: NOTHING})
    every = Passage("a lake", TEXT, [FIRST, SECOND, THIRD])
    one = Passage("a lake", TEXT, [SECOND])
    first = {"start": FIRST[0], "end": FIRST[1]}
    silent, doubtful, sure = (
        NOTHING._replace(**first),
        NO._replace(**first),
        NO._replace(start=SECOND[0], end=SECOND[1]),
    )
    found = reader.with_plain_sentences([every, every, one, every], [silent, doubtful, sure, sure])
    assert [said.span for said in found] == [FIRST, SECOND, SECOND, SECOND]
    assert reader.asked == [[FIRST], [SECOND], [SECOND], [FIRST], [SECOND], [THIRD]]
    assert reader.with_plain_sentences([], []) == []


@pytest.mark.parametrize(
    ("device", "expected"),
    [(None, None), ("cpu", None), ("mps", None), ("cuda:1", "cuda:1"), (torch.device("cuda:0"), "cuda:0")],
)
def test_documents_are_read_where_the_search_model_is(monkeypatch, device, expected):
    opened = []

    def reader(*given):
        opened.append(given[2] if str(given[2]).startswith("cuda") else None)
        return SimpleNamespace(tokenizer=None)

    monkeypatch.setattr("boolbert.retrieval.gpu_reader.GpuReader", reader)
    monkeypatch.setattr(module, "Reader", reader)
    module._opened.cache_clear()
    try:
        assert document_reader(device) is document_reader(device)
        assert opened == [expected]
    finally:
        module._opened.cache_clear()


def test_a_tokenizer_forgets_and_still_gives_the_same(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 2)
    asked = []
    tokenizer = RememberingTokenizer(SimpleNamespace(encode=lambda *of, **how: asked.append(of) or (of, how)))
    for text in ("a", "b", "a", "c", "a"):
        assert tokenizer.encode(text) == ((text,), {"add_special_tokens": True})
    assert asked == [("a",), ("b",), ("c",), ("a",)]
