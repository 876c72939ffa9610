"""The document reader: which sentences it sees, what it says of texts by authors that it has not learned from."""

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
from boolbert.retrieval.document_reader import passage
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
