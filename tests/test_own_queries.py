"""Boolean queries made from documents alone: right gold, the project's format, and splits that share no atom."""

import json

import numpy as np
import pytest
from eval_fixtures import OPERATION
from own_documents import write_products

from boolbert.boolean import TEMPLATES, parse_original_query, template_operators
from boolbert.cli import main
from boolbert.data import DataError, HardNegatives, Quest
from boolbert.data.labels import operators_of
from boolbert.data.own import OwnDocuments, make_queries
from boolbert.data.own.atoms import Atom, Sizes, choose_atoms
from boolbert.data.own.counting import Text, count_texts
from boolbert.data.own.queries import SHARE
from boolbert.data.own.sets import find_sets
from boolbert.data.own.text_words import read_text
from boolbert.retrieval.encoders import random_bert
from boolbert.retrieval.models import load_encoder, with_fresh_attention
from boolbert.train import quest
from boolbert.train.arguments import RECIPES


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    documents = OwnDocuments(write_products(folder / "products.csv"), progress=False)
    return make_queries(documents, folder / "made", queries=350)


def test_the_folder_is_quest_data(shop):
    quest = Quest(shop.folder, strict=True, progress=False)
    assert quest.splits == ["train", "dev"]
    train = quest.queries("train")
    assert len(train) == shop.train == 350
    assert {query.template for query in train} == {query.template for query in quest.queries("dev")} == set(TEMPLATES)
    counts = [sum(query.template == template for query in train) for template in TEMPLATES]
    assert counts == [50] * 7
    assert len({query.query.lower() for query in train}) == 350
    for query in train:
        assert parse_original_query(query.original_query).template == query.template
        unsaid = set(template_operators(query.template)) - operators_of(query.query)
        assert operators_of(query.query) <= set(template_operators(query.template))
        assert unsaid <= {"and"}


def test_gold_follows_from_the_sets_and_not_bites(shop):
    quest = Quest(shop.folder, progress=False)
    queries = quest.queries("train")
    gold, atoms = quest.gold(queries), quest.atoms
    pools = HardNegatives.from_atoms(queries, atoms, gold)
    for index, query in enumerate(queries):
        sets = [set(atoms[name].tolist()) for name in query.atoms]
        answers = OPERATION[query.template](*sets)
        found = set(gold[index].tolist())
        if "not" in query.operators:
            assert found <= answers  # what only mentions the excluded words is left out
            wanted = sets[0] & sets[1] if len(sets) == 3 else sets[0]
            assert SHARE[0] <= len(wanted & sets[-1]) / len(wanted) <= SHARE[1]
        else:
            assert found == answers
        assert len(found) >= 2
        if set(query.operators) & {"and", "not"}:
            assert len(pools[index])


def test_a_denied_mention_makes_no_member():
    """A query for bars that mention nuts must not be answered by those that say "contains no nuts"."""
    having = ["An oat bar with whole nuts.", "Every bar has a nut on top, but no milk."] * 5
    denying = ["It contains no nuts.", "Made without a nut.", "Neither nuts nor eggs are used.", "It is nut-free."] * 5
    texts = [Text(text, {}) for text in (*having, *denying)]
    nuts = Atom("word:nut", "word", "nuts", "mentioning", forms=frozenset(["nut", "nuts"]))
    sets = find_sets(texts, [nuts], [], len(texts), Sizes.of(len(texts)))
    assert sets.members[0].tolist() == list(range(len(having)))


def test_a_field_is_a_set(shop):
    rows = [json.loads(line) for line in (shop.folder / "documents.jsonl").open()]
    atoms = Quest(shop.folder, progress=False).atoms
    red = [row for row, document in enumerate(rows) if document["fields"].get("colour") == ["red"]]
    assert atoms["colour:red"].tolist() == red
    assert "colour: red" in rows[red[0]]["text"]  # else no encoder could know


def test_a_kind_is_what_the_text_says(shop):
    quest = Quest(shop.folder, progress=False)
    key = next(key for key in quest.atoms if key.startswith("kind:") and key.endswith(" tent") and key.count(" ") == 1)
    modifier = key.removeprefix("kind:").split()[0]
    for row in range(len(quest.corpus)):
        text = quest.corpus.text(row).lower()
        first, _, rest = text.partition("). a ")
        said = modifier in rest.partition(" tent ")[0].split() or f"{modifier} tent" in first
        assert (row in quest.atoms[key]) == (said and " tent" in text)


def test_atoms_of_the_splits_are_apart(shop):
    quest = Quest(shop.folder, progress=False)
    train, dev = ({name for query in quest.queries(split) for name in query.atoms} for split in ("train", "dev"))
    assert min(len(train), len(dev)) >= 5
    assert not train & dev


def test_a_seed_gives_the_same_queries(shop, tmp_path):
    path = write_products(tmp_path / "products.csv")
    for name, seed in (("same", 0), ("other", 1)):
        make_queries(OwnDocuments(path, progress=False), tmp_path / name, queries=350, seed=seed)
    again, other = ((tmp_path / name / "train.jsonl").read_text() for name in ("same", "other"))
    assert again == (shop.folder / "train.jsonl").read_text()
    assert other != again


def test_inflections_are_one_atom():
    texts = [f"It is a tale about a {word}, number {n}." for word in ("teacher", "robber", "party") for n in range(8)]
    texts += [f"The {word} met a king, number {n}." for word in ("teachers", "robbers", "parties") for n in range(8)]
    rows = [Text(text, {}) for text in texts]
    counts = count_texts(lambda stride: iter(rows[::stride]), len(rows))
    sizes = Sizes.of(len(rows))
    sets = find_sets(rows, choose_atoms(counts, sizes), counts.heads, len(rows), sizes)
    members = {atom.text: rows.tolist() for atom, rows in zip(sets.atoms, sets.members, strict=True)}
    for place, words in enumerate(("teachers", "robbers", "parties")):
        assert members[words] == [*range(8 * place, 8 * place + 8), *range(24 + 8 * place, 32 + 8 * place)]


def test_texts_are_read_as_meant():
    found = read_text(
        "The Texan is a 1920 American silent Western film written and directed by Lynn Reynolds and starring Tom Mix, "
        "Ann May and J. P. Jones. It is a remake of a 1914 film. Mix's horse was released in the United States.",
        ["film"],
    )
    assert {name for name in found.kinds if name[0][0].isdigit()} == {("1920", "film"), ("1920s", "film")}
    assert {("silent", "film"), ("western", "film"), ("american", "film")} <= found.kinds
    assert {("written", "by", "Lynn Reynolds"), ("directed", "by", "Lynn Reynolds")} <= found.relations
    starring = {name for verb, _, name in found.relations if verb == "starring"}
    assert starring == {"Tom Mix", "Ann May", "J. P. Jones"}
    assert ("released", "in", "United States") in found.relations
    assert found.head == "film"


def test_another_language_works_and_says_so(tmp_path):
    rng = np.random.default_rng(0)
    nouns = ["Hund", "Katze", "Haus", "Garten", "Berg", "Fluss", "Kirche", "Schule", "Wald", "Turm", "Markt", "Hafen"]
    chosen = [rng.choice(nouns, 3, replace=False) for _ in range(150)]
    texts = [f"Der {one} steht neben der {two} und die {three} dort." for one, two, three in chosen]
    made = make_queries(OwnDocuments(texts, progress=False), tmp_path / "made", queries=50)
    assert made.train >= 20
    assert any("do not look English" in note for note in made.notes)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["A short text."] * 5, "5 documents are too few to make queries from; at least 20"),
        (["The same line again."] * 50, "no queries can be made"),
        ([f"Wort{number}" for number in range(50)], "no queries can be made"),
    ],
)
def test_what_gives_no_queries_says_why(tmp_path, texts, problem):
    with pytest.raises(DataError, match=problem):
        make_queries(OwnDocuments(texts, progress=False), tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="is there already"):
        make_queries(OwnDocuments(["text"] * 30, progress=False), tmp_path / "made")
    assert (tmp_path / "made" / "mine.txt").read_text() == "mine"


def test_the_command_shows_and_keeps(tmp_path, capsys):
    path = write_products(tmp_path / "products.csv", 200)
    command = ["data", "queries", str(path), "--queries", "70", "--show", "30"]
    assert main([*command, "--output", str(tmp_path / "made")]) == 0
    shown = capsys.readouterr().out
    assert "text: description, title: name, id: sku" in shown
    assert f"{tmp_path / 'made'}: 70 training and" in shown
    assert shown.count("answers (") == 30
    assert "breaks it (" in shown
    assert Quest(tmp_path / "made", progress=False).splits == ["train", "dev"]
    assert main(command) == 0  # without a folder nothing is kept
    assert capsys.readouterr().out.count("answers (") == 30
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["made", "products.csv"]
    assert main(["data", "queries", str(tmp_path / "prodcuts.csv")]) == 2
    assert "did you mean" in capsys.readouterr().err


@pytest.mark.long
def test_a_model_learns_from_made_queries_and_is_searched_with(shop, tmp_path, monkeypatch, capsys):
    """As docs/own_documents.md says, from a tiny encoder with random weights."""
    plain = load_encoder(str(random_bert()), quiet=True)
    with_fresh_attention(plain, share=True, query_length=None, gate="cue").save(str(tmp_path / "start"))
    flags = ["--data", shop.folder, "--encoder", tmp_path / "start", "--output_dir", tmp_path / "run"]
    few = ["--epochs", "1", "--max_steps", "3", "--batch_size", "8", "--tracker", "none", "--eval_every", "1"]
    words = ["quest.py", RECIPES / "made_queries.yaml", *flags, *few]
    monkeypatch.setattr("sys.argv", list(map(str, words)))
    quest.main()
    run = tmp_path / "run"
    measured = json.loads((run / "metrics.json").read_text())["dev"]
    last = (run / "log.jsonl").read_text().splitlines()[-1]
    assert measured["ndcg@10"] != json.loads(last)["dev/ndcg@10"]  # one is of the mixed weights
    products = write_products(tmp_path / "products.csv", 40)
    index = ["index", str(products), "--model", str(run), "--output", str(tmp_path / "index")]
    assert main(index) == 0
    capsys.readouterr()
    assert main(["search", "waterproof jackets without a hood", "--index", str(tmp_path / "index"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["hits"]) == 10
