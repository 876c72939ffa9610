"""Whatever a file holds, a reader gives rows or one line that says what is wrong."""

import gzip
import io
import json
import re

import pyarrow
import pyarrow.parquet
import pytest
from fuzz.strategies import EXAMPLES, fuzz, json_values, mutated, scalars, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from boolbert.data import BoolQuestions, DataError, Quest, read_triplets
from boolbert.data.own import OwnDocuments, Passages
from boolbert.data.summary import render, summarise

pytestmark = pytest.mark.long

_BUFFER = io.BytesIO()
pyarrow.parquet.write_table(pyarrow.table({"title": ["Alien", "Dune"], "text": ["A film.", "A novel."]}), _BUFFER)
PARQUET = _BUFFER.getvalue()
CONTEXT = {"passage_id": scalars, "title": scalars, "text": scalars}
SHAPES = {
    "documents": {"title": scalars, "text": scalars},
    "train": {
        "query": scalars,
        "docs": st.lists(scalars, max_size=3) | scalars,
        "original_query": scalars,
        "metadata": st.fixed_dictionaries(
            {}, optional={"template": scalars, "domain": scalars, "atoms": st.lists(scalars, max_size=3)}
        )
        | scalars,
    },
    "eval": {
        "qid": scalars,
        "question": scalars,
        "question_type": st.sampled_from(["and", "or", "not", "AND", ""]) | scalars,
        "positive_ctxs": st.lists(st.fixed_dictionaries({}, optional=CONTEXT) | scalars, max_size=2) | scalars,
        "negative_ctxs": st.lists(st.fixed_dictionaries({}, optional=CONTEXT) | scalars, max_size=2) | scalars,
    },
    "corpus": {"docid": scalars, "doc": scalars, "title": scalars},
    "and": {"G": scalars, "P": st.lists(scalars, max_size=3) | scalars, "N": st.lists(scalars, max_size=3) | scalars},
}
GOOD = {
    "documents": {"title": "Alien", "text": "A film."},
    "train": {"query": "films", "docs": ["Alien"], "metadata": {"template": "_", "atoms": ["a"]}},
    "eval": {"qid": 1, "question": "q", "question_type": "and", "positive_ctxs": [], "negative_ctxs": []},
    "corpus": {"docid": "1", "doc": "text"},
    "and": {"G": "a and b", "P": ["b and a"], "N": ["a"]},
}


@st.composite
def rows(draw, table):
    """A few rows of a table, most of their fields as they should be."""
    odd = draw(st.fixed_dictionaries({}, optional=SHAPES[table]))
    kept = {**GOOD[table], **odd}
    for name in draw(st.sets(st.sampled_from(sorted(kept)), max_size=1)):
        del kept[name]
    return kept


def lines(values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def contents(table):
    return st.one_of(
        st.lists(rows(table), max_size=4).map(lines),
        st.lists(rows(table), max_size=3).map(lambda values: json.dumps(values).encode()),
        mutated(st.just(lines([GOOD[table]] * 3))),
        st.lists(json_values, max_size=3).map(lines),
        st.binary(max_size=60),
        st.sampled_from(
            [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5000, b"[" + b"1" * 5000 + b"]", b"\xff\xfe", b"NaN"]
        ),
    )


def only_data_errors(read):
    """Run it; whatever is wrong is a DataError of one line."""
    problem = "one line"
    try:
        read()
    except DataError as error:
        problem = str(error)
    assert len(problem.splitlines()) == 1, problem


def write(folder, name, content, zipped):
    for path in folder.iterdir():
        path.unlink()
    path = folder / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(content) if zipped else content)
    return path


READERS = {
    "documents": lambda folder: Quest(folder, progress=False).corpus,
    "train": lambda folder: Quest(folder, progress=False).queries("train"),
    "eval": lambda folder: BoolQuestions(folder, progress=False).questions("eval"),
    "corpus": lambda folder: BoolQuestions(folder, progress=False).corpus,
    "and": lambda folder: list(read_triplets(folder)),
}


@pytest.mark.parametrize("table", READERS)
def test_tables(folder, table):
    @fuzz
    @given(content=contents(table), zipped=st.booleans(), ending=st.sampled_from([".jsonl", ".json"]))
    def check(content, zipped, ending):
        write(folder, table + ending, content, zipped)
        only_data_errors(lambda: READERS[table](folder))

    check()


@fuzz
@given(queries=contents("train"), documents=contents("documents"), atoms=json_values, strict=st.booleans())
def test_gold_and_atoms(folder, queries, documents, atoms, strict):
    write(folder, "train.jsonl", queries, False)
    (folder / "documents.jsonl").write_bytes(documents)
    (folder / "atoms.json").write_text(json.dumps(atoms))
    quest = Quest(folder, strict=strict, progress=False)
    only_data_errors(lambda: quest.gold("train"))
    only_data_errors(lambda: quest.atoms)


@fuzz
@given(
    tables=st.dictionaries(
        st.sampled_from(["documents.jsonl", "train.jsonl", "eval.json", "corpus.jsonl", "and.jsonl", "atoms.json"]),
        st.one_of(*map(contents, SHAPES)),
        min_size=1,
        max_size=3,
    )
)
def test_the_summary_lists_what_is_wrong_and_goes_on(folder, tables):
    for path in folder.iterdir():
        path.unlink()
    for name, content in tables.items():
        (folder / name).write_bytes(content)
    only_data_errors(lambda: render(summarise(folder)))


own_rows = st.lists(
    st.dictionaries(
        st.sampled_from(["title", "text", "id", "year", "tags", "a.b", "vegan"]) | texts,
        scalars | st.lists(scalars, max_size=3),
        max_size=5,
    )
    | rows("documents"),
    max_size=4,
)
csv_lines = st.lists(
    st.lists(texts | st.sampled_from(["title", "text", "1,5", '"', '""', "a;b"]), max_size=4), max_size=5
).flatmap(lambda table: st.sampled_from(",;\t|").map(lambda sign: "\n".join(sign.join(line) for line in table)))
own_contents = st.one_of(
    own_rows.map(lines),
    own_rows.map(lambda values: json.dumps(values).encode()),
    csv_lines.map(lambda text: text.encode("utf-8", "surrogatepass")),
    mutated(st.just(b'title,text,year\nAlien,"A film, of 1979",1979\nDune,A novel,1965\n')),
    texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=60),
)
ENDINGS = [".jsonl", ".json", ".csv", ".tsv", ".txt", ".md", ".ndjson"]


@fuzz
@given(content=own_contents, ending=st.sampled_from(ENDINGS), zipped=st.booleans(), passages=st.booleans())
def test_a_users_own_documents(folder, content, ending, zipped, passages):
    path = write(folder, f"mine{ending}", content, zipped)
    cut = Passages(words=3, overlap=1) if passages else None

    def read():
        documents = OwnDocuments(path, passages=cut, progress=False)
        assert re.sub("[\n\u200c\u200d]", "", documents.preview()).isprintable()
        assert len(documents.corpus()) == documents.report.documents

    only_data_errors(read)


@settings(fuzz, max_examples=EXAMPLES // 2)
@given(content=mutated(st.just(PARQUET)))
def test_a_damaged_parquet_file(folder, content):
    path = write(folder, "mine.parquet", content, False)
    only_data_errors(lambda: OwnDocuments(path, progress=False).corpus())
