"""Queries in other languages: what the reader finds excluded in Latin letters is read; all others are ranked by the
plain encoder, and a line says that -word works in any language."""

import json
from pathlib import Path

import pytest

from boolbert import obey, read
from boolbert.boolean import foreign_language
from boolbert.boolean.languages import denying_word, is_foreign_script
from boolbert.cli.main import main
from boolbert.data.own import OwnDocuments
from boolbert.data.reading import marked_queries
from boolbert.data.reading_scores import words
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.retrieval.index import build_index
from boolbert.retrieval.models import default_model, load_encoder
from boolbert.retrieval.stores import index_documents, open_store
from boolbert.search import BoolSearcher, explain, query_reader

LINES = (Path(__file__).parent / "languages.tsv").read_text(encoding="utf-8").splitlines()
QUERIES = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]
OF_A_LANGUAGE = [(query, excluded) for query, language, excluded in QUERIES if language != "-"]
ENGLISH = [(query, excluded) for query, language, excluded in QUERIES if language == "-"]
NOT_TOLD = {"novelas sin romance"}
# What the reader has still to learn. A query that is read right leaves these lists.
WRONG = {  # more is excluded than is said
    "casas rurales sin piscina cerca de Ronda",
    "appartement sans vis-à-vis à Lyon",
    "restaurants sans gluten à Paris",
}
MISSED = 12  # queries that exclude something, of which nothing is read; that is told
WRONG_ENGLISH = {
    "Sans Souci palace",
    "cos sin tan",
    "translate nicht to english",
    "sin taxes not on sugar",
    "ne plus ultra",
    "Comic Sans alternatives",
    "sans serif fonts",
    "sans serif fonts without kerning",
    "persona non grata",
    "De Niro films",
    "Così fan tutte",
    "sin city movies",
    "Mercedes AMG not electric",
    "señor frogs",
}
# Small words of other languages, which count as little as "are", "of" and "have" do.
SMALL = words(["son sean sono são sind zijn de der llevan"])
DESSERTS = {
    "a": "Un postre de chocolate con nueces y miel.",
    "b": "Un postre de manzana con canela.",
    "c": "Helado de vainilla; contiene nueces.",
    "d": "Arroz con leche y limón.",
    "e": "A chocolate dessert with walnuts.",
}
SPANISH = "postres de chocolate para niños"
NOTE = (
    "the query looks Spanish: only English is read, so it is searched as it stands; -word leaves something out, in any "
    "language"
)


@pytest.mark.parametrize(("query", "language", "excluded"), QUERIES)
def test_a_language_is_told_by_small_words_and_letters(query, language, excluded):
    expected = None if language == "-" or query in NOT_TOLD else language
    assert foreign_language(query) == expected


def test_english_queries_are_not_taken_for_others():
    texts = [query.text for split in ("train", "dev", "test", "groups") for query in marked_queries(split)]
    told = [text for text in texts if foreign_language(text)]
    assert len(texts) > 11_000
    assert told == ["Nicht ohne meine Tochter english title"]


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("postres sin nueces", "sin"),
        ("recetas que no llevan huevo", "que no"),
        ("Stellen Ohne Nachtschicht", "Ohne"),
        ("restaurantes con terraza en Madrid", None),
        ("отели без бассейна", None),
    ],
)
def test_the_word_that_denies_is_named(query, word):
    assert denying_word(query, foreign_language(query)) == word


def is_as_it_stands(query, found):
    """Nothing of it is read, and one line says so."""
    assert (found.operators, found.excluded, found.alternatives) == ((), (), ())
    assert [[one.text for one in group] for group in found.groups] == [[query]]
    assert found.decided_by == "the query's language"
    assert found.plain
    (note,) = found.notes
    assert "-word" in note
    assert found.as_json()["notes"] == [note]


@pytest.mark.parametrize(("query", "excluded"), OF_A_LANGUAGE)
def test_in_latin_letters_what_is_excluded_is_read_without_a_note(query, excluded):
    found, right = read(query), frozenset() if excluded == "-" else words(excluded.split("|"))
    if not found.excluded and query not in NOT_TOLD:
        is_as_it_stands(query, found)
        assert query not in WRONG
        return
    assert found.decided_by == "the reader"
    assert found.notes == ()
    assert "not" in found.operators
    out = words(one.text for one in found.excluded)
    assert (right <= out <= right | SMALL and bool(right)) == (query not in WRONG), sorted(out)


def test_of_most_queries_in_latin_letters_what_they_exclude_is_found():
    latin = [(query, excluded) for query, excluded in OF_A_LANGUAGE if not is_foreign_script(query)]
    missed = [query for query, excluded in latin if excluded != "-" and not read(query).excluded]
    assert len(missed) <= MISSED, missed
    assert {query for query, _ in latin} > WRONG
    assert len(WRONG) <= 3


@pytest.mark.parametrize(("query", "excluded"), ENGLISH)
def test_foreign_words_in_english_queries_exclude_nothing(query, excluded):
    found, right = read(query), frozenset() if excluded == "-" else words(excluded.split("|"))
    out = words(one.text for one in found.excluded)
    assert (out == right) == (query not in WRONG_ENGLISH), sorted(out)


def test_what_is_still_read_wrong_stands_in_the_table():
    assert {query for query, _ in ENGLISH} > WRONG_ENGLISH
    assert len(WRONG_ENGLISH) <= 14


SCRIPTS = [query for query, *_ in QUERIES if is_foreign_script(query)]


@pytest.mark.parametrize("query", SCRIPTS)
def test_another_script_is_never_read(query, monkeypatch):
    monkeypatch.setattr(query_reader, "open_reader", lambda adapters: pytest.fail("the reader was asked"))
    is_as_it_stands(query, read(query))


def test_other_scripts_are_in_the_table():
    assert len(SCRIPTS) == 19


@pytest.mark.parametrize(
    ("query", "note"),
    [
        (SPANISH, NOTE),
        (
            "recepten zonder ei",
            "the query looks Dutch: only English is read, so “zonder” leaves nothing out; -word does, in any language",
        ),
    ],
)
def test_what_is_not_read_is_told(query, note):
    assert read(query).notes == (note,)


def test_what_is_typed_is_read_in_any_language():
    found = read("postres con chocolate -nueces")
    assert [one.text for one in found.excluded] == ["nueces"]
    assert found.notes == ()
    (note,) = read("postres sin azúcar -nueces").notes
    assert "“sin” leaves nothing out; -word does, in any language" in note


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    rows = [{"id": name, "title": name, "text": text} for name, text in DESSERTS.items()]
    documents, model = OwnDocuments(rows, id="id", progress=False), default_model("cpu")
    return BoolSearcher(model, build_index(documents, tmp_path_factory.mktemp("d") / "index", model, progress=False))


def test_it_is_ranked_by_the_plain_encoder(searcher, tmp_path):
    plain = searcher.search(SPANISH, 5, operators=[])
    found = searcher.search(SPANISH, 5)
    assert [hit.title for hit in found] == [hit.title for hit in plain]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in plain], abs=1e-5)
    assert searcher.rows(SPANISH, 5) == [hit.row for hit in plain]
    assert not any(hit.reasons for hit in found)
    store = open_store(str(tmp_path / "desserts"))
    rows = [{"id": name, "title": name, "text": text} for name, text in DESSERTS.items()]
    index_documents(OwnDocuments(rows, id="id", progress=False), store, searcher.model, progress=False)
    assert [hit.title for hit in BoolSearcher(searcher.model, store).search(SPANISH, 5)] == [hit.title for hit in plain]


def test_reranking_is_by_vectors_alone():
    encoder = obey(load_encoder(resolve_encoder().path, device="cpu", quiet=True))
    texts = list(DESSERTS.values())
    scores = encoder.encode_query_parts(SPANISH).scores(encoder.encode_document(texts))
    ranked = encoder.rerank(SPANISH, texts)
    assert [one.score for one in ranked] == pytest.approx(sorted(scores.tolist(), reverse=True), abs=1e-5)
    assert not any(one.reasons for one in ranked)


def test_what_is_typed_leaves_out_in_any_language(searcher):
    answer = searcher.search("postres -nueces", 5)
    assert {hit.title for hit in answer} == {"b", "d", "e"}
    assert answer.left_out == 2


def test_every_door_says_so(searcher, capsys):
    assert searcher.search(SPANISH, 2).notes == [NOTE]
    assert searcher.search(SPANISH, 2).as_json()["notes"] == [NOTE]
    sentence = f"{NOTE[0].upper()}{NOTE[1:]}."
    explanation = explain(searcher, SPANISH, 2)
    assert sentence in explanation.notes
    assert sentence in explanation.page()
    assert sentence in explanation.as_json()["notes"]
    folder = str(searcher.index.folder)
    assert main(["search", SPANISH, "--index", folder, "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["notes"] == [NOTE]
    assert shown.err.count(NOTE) == 1
    assert shown.err.count("note:") == 1
    assert main(["explain", SPANISH, "--index", folder]) == 0
    assert sentence in capsys.readouterr().out
    assert main(["search", SPANISH, "--index", folder, "--operators", "none"]) == 0
    assert NOTE not in capsys.readouterr().err
