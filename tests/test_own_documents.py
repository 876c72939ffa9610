"""Documents in the formats people have: read as meant, or one clear line."""

import gzip
import json

import pytest
from own_documents import write_products

from boolbert.boolean import split_clauses
from boolbert.cli import main
from boolbert.data import DataError, Document
from boolbert.data.own import OwnDocuments, Passages
from boolbert.data.own.text_words import read_text
from boolbert.retrieval.index import Index

ROWS = [
    {"name": "Chocolate cake", "body": "Melt the butter.", "cuisine": "French"},
    {"name": "Lentil stew", "body": "Cook the lentils, add a piece of chocolate.", "cuisine": "Indian"},
    {"name": "Fruit salad", "body": "Cut the fruit.", "cuisine": "French"},
    {"name": "Dal", "body": "Cook the lentils for long.", "cuisine": "Indian"},
]


JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)
CELLS = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]
FORMATS = {
    "recipes.jsonl": JSONL,
    "recipes.jsonl.gz": gzip.compress(JSONL.encode()),
    "recipes.csv": "\ufeff" + "".join('{};"{}";{}\n'.format(*cells) for cells in CELLS),
    "recipes.tsv": "\n".join("\t".join(cells) for cells in CELLS),
    "recipes.parquet": None,
}


@pytest.mark.parametrize("file", FORMATS)
def test_every_format_gives_the_same_documents(tmp_path, file):
    content = FORMATS[file]
    if content is None:
        datasets = pytest.importorskip("datasets")
        datasets.Dataset.from_list(ROWS).to_parquet(tmp_path / file)
    else:
        (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    documents = OwnDocuments(tmp_path / file)
    assert (documents.layout.texts, documents.layout.title, documents.layout.atoms) == (("body",), "name", ("cuisine",))
    read = list(documents)
    assert [(d.name, d.text, d.fields) for d in read] == [
        (row["name"], row["body"], {"cuisine": (row["cuisine"],)}) for row in ROWS
    ]
    assert read[0].content == "Chocolate cake (cuisine: French). Melt the butter."


def test_the_title_is_part_of_what_is_encoded_and_stands_once():
    documents = [{"title": "Chocolate cake", "text": "Melt the butter."}, Document("Alien (film)", "Alien is a film.")]
    corpus = OwnDocuments(documents).corpus()
    assert [corpus.text(row) for row in range(2)] == ["Chocolate cake. Melt the butter.", "Alien is a film."]
    assert corpus.titles == ["Chocolate cake", "Alien (film)"]


def test_two_columns_without_a_header_and_a_document_a_line(tmp_path):
    (tmp_path / "passages.tsv").write_text('0\tA passage, with "quotes.\n1\tAnother.\n')
    read = [(d.name, d.content, d.id) for d in OwnDocuments(tmp_path / "passages.tsv")]
    assert read == [("0", 'A passage, with "quotes.', "0"), ("1", "Another.", "1")]
    (tmp_path / "lines.txt").write_text("This line of ten words has a name of eight.\n\nAnother.\n")
    assert [d.name for d in OwnDocuments(tmp_path / "lines.txt")] == ["This line of ten words has a name", "Another."]


def test_a_folder_of_texts(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "first_note.txt").write_text("Some words.\nAnd more.")
    (tmp_path / "second.md").write_text("# A heading\n\nThe text below it.")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    read = [(d.name, d.text, d.id) for d in OwnDocuments(tmp_path)]
    assert read == [
        ("first note", "Some words.\nAnd more.", "notes/first_note.txt"),
        ("A heading", "The text below it.", "second.md"),
    ]


def test_structured_fields_are_found(tmp_path):
    documents = OwnDocuments(write_products(tmp_path / "products.csv", 200))
    assert documents.layout.atoms == ("brand", "colour", "tags", "vegan", "released")  # not sku, not price
    first = next(iter(documents))
    assert set(first.fields) - {"vegan"} == {"brand", "colour", "tags", "released"}
    assert len(first.fields["tags"]) == 2
    assert first.fields["released"][0].isdigit()
    assert len(first.fields["released"][0]) == 4
    assert first.fields["brand"][0] in first.title
    assert first.fields["brand"][0] + "," not in first.content.split("(")[1]  # told already


def test_a_title_of_codes_is_the_id_only_where_there_is_no_other(tmp_path):
    rows = [{"id": f"d{row}", "title": f"T{row}", "text": "a warm jacket"} for row in range(4)]
    for drop, id, title in ((None, "d0", "T0"), ("id", "T0", "")):
        path = tmp_path / f"{drop}.jsonl"
        path.write_text("".join(json.dumps({k: v for k, v in row.items() if k != drop}) + "\n" for row in rows))
        first = next(iter(OwnDocuments(path, progress=False)))
        assert (first.id, first.title) == (id, title)


def test_fields_can_be_named(tmp_path):
    path = write_products(tmp_path / "products.csv", 50)
    documents = OwnDocuments(path, text="name,description", title="sku", atoms="colour")
    assert documents.layout.texts == ("name", "description")
    assert next(iter(documents)).name == "P0000"
    assert list(next(iter(documents)).fields) == ["colour"]
    assert OwnDocuments(path, atoms="none").layout.atoms == ()


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path, capsys):
    folder = tmp_path / "texts"
    folder.mkdir()
    (tmp_path / "private.txt").write_text("root:x:0:0")
    (folder / "a.txt").write_text("Some words.")
    (folder / "b.txt").symlink_to(folder / "a.txt")  # which stays inside
    assert len(list(OwnDocuments(folder))) == 2
    (folder / "p.txt").symlink_to(tmp_path / "private.txt")
    with pytest.raises(DataError, match=r"p\.txt: is a link that leads out of the folder; .* pass --follow-links"):
        list(OwnDocuments(folder))
    assert len(list(OwnDocuments(folder, follow_links=True))) == 3
    index = ["index", str(folder), "--output", str(tmp_path / "index"), "--no-evidence"]
    assert main(index) == 2  # nothing was written
    assert "pass --follow-links" in capsys.readouterr().err
    assert main([*index, "--follow-links"]) == 0
    assert len(Index(tmp_path / "index")) == 3
    assert main(["index", str(folder), "--output", str(tmp_path / "index")]) == 2
    assert "leads out of the folder" in capsys.readouterr().err
    table = tmp_path / "table"
    table.mkdir()
    (table / "documents.csv").symlink_to(write_products(tmp_path / "products.csv", 3))
    with pytest.raises(DataError, match="leads out of the folder"):
        OwnDocuments(table)


def test_html_is_read_as_its_words():
    rows = [
        {
            "id": "a&amp;b",
            "title": "<p>Hummus</p>",
            "text": "With garlic &amp; oil.<br>Serve <b>cold</b>.",
            "kind": "Dip",
        },
        {"id": "2", "title": "a < b", "text": "Where x<y and y > z, R&D.", "kind": "Sauce &amp; dip"},
    ]
    first, second = OwnDocuments(rows, atoms="kind")
    assert (first.id, first.title, first.text) == ("a&amp;b", "Hummus", "With garlic & oil.\nServe cold.")
    assert (second.title, second.text) == ("a < b", "Where x<y and y > z, R&D.")
    assert second.fields == {"kind": ("Sauce & dip",)}


def test_an_id_of_its_own_name_and_numbers_that_are_no_sets(tmp_path):
    rows = [
        {
            "ticket_id": 100 + row,
            "user_id": row % 2,
            "title": f"Ticket about trains {row}",
            "text": "It was late again.",
        }
        | {
            "price": f"{row % 3 * 10}",
            "minutes": row % 2 * 15,
            "year": 2019 + row % 3,
            "city": ("Bonn", "Ulm")[row % 2],
        }
        for row in range(30)
    ]
    documents = OwnDocuments(rows)
    assert (documents.layout.id, documents.layout.atoms) == ("ticket_id", ("year", "city"))
    assert next(iter(documents)).id == "100"
    assert documents.columns["minutes"] == "number"
    assert OwnDocuments([{**row, "ticket_id": row["user_id"]} for row in rows]).layout.id is None
    assert OwnDocuments([{**row, "id": f"t{row['ticket_id']}"} for row in rows]).layout.id == "id"
    assert OwnDocuments(rows, atoms="price").layout.atoms == ("price",)


def test_the_name_of_a_field_is_no_clause():
    content = next(iter(OwnDocuments(ROWS))).content
    clauses = [content[clause.start : clause.end] for clause in split_clauses(content)]
    assert clauses == ["Chocolate cake", "cuisine: French", "Melt the butter"]
    assert "cuisine" not in read_text(content).words


def test_what_is_noticed():
    rows = [{"title": "One", "text": "Same text."}] * 2 + [
        {"title": "Two", "text": "word " * 300},
        {"title": "", "text": " "},
    ]
    documents = OwnDocuments(rows)
    assert [d.name for d in documents] == ["One", "One [2]", "Two"]
    notes = " | ".join(documents.report.lines())
    for part in (
        "1 rows hold no words",
        "documents item 4",
        "1 documents repeat an earlier one",
        "1 titles come more than once",
        "1 of 3 documents are longer than 180 words",
    ):
        assert part in notes


def test_passages_overlap_and_hold_every_word():
    text = " ".join(f"w{number}{'.' if number % 17 == 0 else ''}" for number in range(1000))
    documents = OwnDocuments([{"title": "Long", "text": text}], passages=Passages(100, 20))
    parts = list(documents)
    assert parts[0].name == f"Long (1 of {len(parts)})"
    assert all(part.content.startswith("Long. ") and len(part.text.split()) <= 100 for part in parts)
    assert [word for part in parts for word in part.text.split()[20 if part is not parts[0] else 0 :]] == text.split()
    assert all(part.text.endswith(".") for part in parts[:-1])
    with pytest.raises(ValueError, match="cannot overlap"):
        Passages(10, 10)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("bad.csv", b"id,text\n1,a\n2,b,c\n", r"bad.csv:3: has 3 columns, expected 2: id, text"),
        ("empty.csv", b"", r"empty.csv: the file is empty"),
        ("header.csv", b"id,text\n", r"header.csv: there are no documents"),
        ("twice.csv", b"id,text,text\n1,a,b\n", r"twice.csv:1: holds 'text' twice"),
        ("numbers.csv", b"id,price\n1,2\n3,4\n", r"numbers.csv:2: no field holds text \(fields here: id, price\)"),
        ("not.parquet", b"hello", r"not.parquet: cannot be read as parquet"),
        ("image.png", b"\x89PNG", r"image.png: unknown file type '.png'; expected a .jsonl"),
        ("blank.jsonl", b'{"text": " "}\n', r"blank.jsonl:1: no field holds text"),
        (
            "half.jsonl",
            b'{"text": "a b c", "\\ud800x": "q"}\n' * 3,
            r"half.jsonl:1: field '\\ud800x' holds half a surrogate pair",
        ),
        (
            "half.jsonl",
            b'{"text": "a b c", "genre": "y"}\n' * 3 + b'{"text": "d e f", "genre": "\\ud800"}\n' * 3,
            "half.jsonl:4: field 'genre' holds half a surrogate pair",
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path, name, content, problem):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=problem) as error:
        list(OwnDocuments(tmp_path / name))
    assert "\n" not in str(error.value)


def test_a_name_that_is_not_there_is_told_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_products(tmp_path / "products.csv", 3)
    with pytest.raises(DataError, match=r"prodcuts.csv: no such file or folder; did you mean products.csv\?"):
        OwnDocuments("prodcuts.csv")
    with pytest.raises(DataError, match=r"recipes: no such file or folder; expected a \.jsonl"):
        OwnDocuments("recipes")
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError, match="~nobody-of-this-name: no such file or folder"):
        OwnDocuments("~nobody-of-this-name")
    with pytest.raises(DataError, match="data/recipes: no such file or folder"):
        OwnDocuments("data/recipes")
    with pytest.raises(DataError, match="data: holds no documents"):
        OwnDocuments("data")
    with pytest.raises(DataError, match="there is no field 'txt' for --text"):
        OwnDocuments("products.csv", text="txt")
    write_products(tmp_path / "data" / "one.csv", 3)
    assert len(list(OwnDocuments("data"))) == 3
    write_products(tmp_path / "data" / "two.csv", 3)
    with pytest.raises(DataError, match="data: holds several tables"):
        OwnDocuments("data")


def test_an_index_takes_documents_as_they_are(tmp_path, capsys, monkeypatch, run_once):
    model = str(run_once())
    path = write_products(tmp_path / "products.csv", 30)
    folder = str(tmp_path / "index")
    assert main(["index", str(path), "--output", folder, "--model", model, "--atoms", "colour"]) == 0
    shown = capsys.readouterr()
    assert "30 documents" in shown.out
    assert "text: description, title: name, id: sku, sets: colour" in shown.err
    assert main(["search", "red tents", "--index", folder, "-k", "1", "--json"]) == 0
    hit = json.loads(capsys.readouterr().out)["hits"][0]
    assert hit["text"].startswith(f"{hit['title'].partition(' [')[0]} (colour: ")
    monkeypatch.setattr("boolbert.search.load_model", lambda *_, **__: pytest.fail("loaded before the file was seen"))
    assert main(["index", str(tmp_path / "prodcuts.csv"), "--output", folder, "--model", model]) == 2
    assert "did you mean" in capsys.readouterr().err
