"""Bad data: every fault is named by file, line and field in one line, and nothing is dropped without a word."""

import gzip
import json

import pytest

from boolbert.data import DataError, DataWarning, Quest
from boolbert.data.boolquestions import BoolQuestions
from boolbert.data.setbert import read_triplets

DOCUMENT = '{"title": "Alien", "text": "A film."}\n'
QUERY = '{"query": "films", "docs": ["Alien"], "metadata": {"template": "_"}}\n'
QUESTION = {"qid": 1, "question": "q", "question_type": "and", "positive_ctxs": [], "negative_ctxs": []}


def line_of(values):
    return json.dumps(values) + "\n"


def query(**changes):
    return line_of({**json.loads(QUERY), **changes})


@pytest.fixture
def quest(tmp_path):
    (tmp_path / "documents.jsonl").write_text(DOCUMENT)
    (tmp_path / "train.jsonl").write_text(QUERY)
    return tmp_path


def one_line(error):
    assert "\n" not in str(error.value)
    return str(error.value)


BAD_QUERIES = {
    "broken JSON": ('{"query": "films", "docs": ["Ali\n', "broken JSON at column"),
    "no object": ('["films"]\n', "a row must be a JSON object, got list"),
    "field missing": ('{"query": "films"}\n', "field 'docs' is missing; expected a list of texts (fields here: query)"),
    "field null": (query(query=None), "field 'query' is null; expected a text"),
    "number for text": (query(query=3), "field 'query' must be a text, got int 3"),
    "text for list": (query(docs="Alien"), "field 'docs' must be a list of texts, got str 'Alien'"),
    "number in list": (query(docs=["Alien", 7]), "field 'docs[1]' must be a text, got int 7"),
    "empty title": (query(docs=[" "]), "field 'docs[0]' is empty"),
    "empty query": (query(query=""), "field 'query' is empty"),
    "metadata no object": (query(metadata="x"), "field 'metadata' must be an object, got str 'x'"),
    "unknown template": (query(metadata={"template": "_ xor _"}), "field 'metadata.template' must be one of"),
    "too few atoms": (
        query(metadata={"template": "_ or _", "atoms": ["a"]}),
        "field 'metadata.atoms' must name 2 sets for '_ or _', got 1",
    ),
    "half a surrogate": ('{"query": "a \\ud83d b", "docs": []}\n', "field 'query' holds half a surrogate pair"),
    "invalid UTF-8": (b'{"query": "caf\xe9", "docs": []}\n', "invalid UTF-8: byte 0xe9 at position 14"),
    "blank line": ("\n" + QUERY, "blank line between rows"),
}


@pytest.mark.parametrize(("line", "problem"), BAD_QUERIES.values(), ids=BAD_QUERIES)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_bad_line_is_named_with_its_place(quest, line, problem, zipped):
    content = QUERY.encode() + (line if isinstance(line, bytes) else line.encode()) + QUERY.encode()
    path = quest / ("dev.jsonl.gz" if zipped else "dev.jsonl")
    path.write_bytes(gzip.compress(content) if zipped else content)
    with pytest.raises(DataError) as error:
        Quest(quest).queries("dev")
    assert one_line(error).startswith(f"{path}:2: {problem}")


@pytest.mark.parametrize("content", [b"", b"\n\n", gzip.compress(b"")], ids=["empty", "blank lines", "gzip"])
def test_an_empty_file(quest, content):
    path = quest / ("dev.jsonl.gz" if content[:2] == b"\x1f\x8b" else "dev.jsonl")
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        Quest(quest).queries("dev")
    assert one_line(error) == f"{path}: the file is empty; expected at least one row"


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_cut_gzip(quest, keep):
    rows = "".join(line_of({"title": f"{i}", "text": f"text {i * 7919 % 1013} {i}"}) for i in range(5000))
    whole = gzip.compress(rows.encode())
    (quest / "documents.jsonl").unlink()
    path = quest / "documents.jsonl.gz"
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(DataError) as error:
        list(Quest(quest).documents())  # a streaming reader must not stop quietly either
    assert "the gzip file is cut short or damaged" in one_line(error)
    with pytest.raises(DataError):
        Quest(quest).corpus  # noqa: B018


def test_missing_gold_is_counted_and_strict_makes_it_an_error(quest):
    (quest / "train.jsonl").write_text(QUERY + query(docs=["Alien", "Solaris", "Stalker"]) + query(docs=["Solaris"]))
    problem = (
        f"3 of 5 gold titles, in 2 of 3 queries, are not among the 1 documents of {quest}/documents.jsonl: "
        f"{quest}/train.jsonl:2: field 'docs': 'Solaris'; {quest}/train.jsonl:2: field 'docs': 'Stalker'; "
        f"{quest}/train.jsonl:3: field 'docs': 'Solaris'"
    )
    with pytest.warns(DataWarning) as warned:
        gold = Quest(quest).gold("train")
    assert [str(warning.message) for warning in warned] == [problem]
    assert gold.counts.tolist() == [1, 1, 0]
    with pytest.raises(DataError) as error:
        Quest(quest, strict=True).gold("train")
    assert one_line(error) == problem


def test_duplicate_titles_are_kept_reported_and_all_gold(quest):
    (quest / "documents.jsonl").write_text(DOCUMENT + DOCUMENT.replace("Alien", "Dune") + DOCUMENT)
    problem = f"{quest}/documents.jsonl:3: field 'title' repeats 'Alien' of line 1"
    with pytest.warns(DataWarning, match=f"{problem}; all these documents are kept"):
        corpus = Quest(quest).corpus
    assert (len(corpus), corpus.rows("Alien")) == (3, [0, 2])
    with pytest.warns(DataWarning):
        assert Quest(quest).gold("train")[0].tolist() == [0, 2]  # else the second one could be drawn as a negative
    with pytest.raises(DataError, match=f"{problem}; titles must be unique"):
        Quest(quest, strict=True).corpus  # noqa: B018


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"a": [0', ":1: broken JSON at column"),
        ("[1]", ":1: must be an object of atom names with their rows, got list"),
        ('{"a": 3}', ": field 'a' must be a list of row numbers, got 3"),
        ('{"a": [0, "1"]}', ": field 'a' must be a list of row numbers, got '1' in it"),
        ('{"a": [true]}', ": field 'a' must be a list of row numbers, got True in it"),
        ('{"a": [1]}', ": field 'a' names row 1, but the 1 documents are rows 0 to 0"),
        ('{"a": [-1]}', ": field 'a' names row -1"),
    ],
)
def test_bad_atoms(quest, content, problem):
    (quest / "atoms.json").write_text(content)
    with pytest.raises(DataError) as error:
        Quest(quest).atoms  # noqa: B018
    assert one_line(error).startswith(f"{quest}/atoms.json{problem}")


def test_a_split_that_is_not_there_and_one_that_is_there_twice(quest):
    with pytest.raises(DataError, match=r"no split 'test'; found documents, train$"):
        Quest(quest).queries("test")
    (quest / "train.jsonl.gz").write_bytes(gzip.compress(QUERY.encode()))
    with pytest.raises(DataError, match=r"train.jsonl and train.jsonl.gz are the same table; keep one of them"):
        Quest(quest).queries("train")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"question_type": "xor"}, "field 'question_type' must be one of and, or, not, got 'xor'"),
        ({"qid": 1.5}, "field 'qid' must be a text or a whole number, got float 1.5"),
        ({"positive_ctxs": {}}, "field 'positive_ctxs' must be a list of objects, got dict {}"),
        ({"positive_ctxs": ["7"]}, "field 'positive_ctxs[0]' must be an object, got str '7'"),
        ({"positive_ctxs": [{"id": "7"}]}, "field 'positive_ctxs[0].passage_id' is missing"),
    ],
)
def test_bad_questions(tmp_path, changes, problem):
    (tmp_path / "eval.jsonl").write_text(line_of(QUESTION) + line_of({**QUESTION, **changes}))
    with pytest.raises(DataError) as error:
        BoolQuestions(tmp_path).questions("eval")
    assert one_line(error).startswith(f"{tmp_path}/eval.jsonl:2: {problem}")
    (tmp_path / "eval.jsonl").rename(tmp_path / "eval.json")
    (tmp_path / "eval.json").write_text(json.dumps([QUESTION, {**QUESTION, **changes}]))
    with pytest.raises(DataError) as error:
        BoolQuestions(tmp_path).questions("eval")
    assert one_line(error).startswith(f"{tmp_path}/eval.json item 2: {problem}")


def test_bad_triplets_stop_the_reading_or_are_counted(tmp_path):
    good = {"G": "a and b", "P": ["b and a"], "N": ["a"]}
    path = tmp_path / "and.jsonl"
    lines = [line_of(good), line_of({**good, "N": []}), '{"G": "a\n', line_of({**good, "P": "b"}), line_of(good)]
    path.write_text("".join(lines))
    with pytest.raises(DataError, match=rf"{path}:2: field 'N' must hold at least one sentence"):
        list(read_triplets(tmp_path))
    (tmp_path / "or.jsonl").write_text("broken from the first line on\n" + line_of(good))
    with pytest.warns(DataWarning, match=rf"4 broken rows were skipped: {path}:2: .*{path}:3: .*{path}:4: field 'P'"):
        assert len(list(read_triplets(tmp_path, skip_bad=True))) == 3
