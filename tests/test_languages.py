"""Queries in other languages: they are told, ranked by the plain encoder, and a line says that -word works in any."""

import json
from pathlib import Path

import pytest

from boolbert import obey, read
from boolbert.boolean import foreign_language
from boolbert.boolean.languages import denying_word
from boolbert.cli.main import main
from boolbert.data.own import OwnDocuments
from boolbert.data.reading import marked_queries
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.retrieval.index import build_index
from boolbert.retrieval.models import default_model, load_encoder
from boolbert.retrieval.stores import index_documents, open_store
from boolbert.search import BoolSearcher, explain, query_reader

LINES = (Path(__file__).parent / "languages.tsv").read_text(encoding="utf-8").splitlines()
QUERIES = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]
NOT_TOLD = {"novelas sin romance"}
DESSERTS = {
    "a": "Un postre de chocolate con nueces y miel.",
    "b": "Un postre de manzana con canela.",
    "c": "Helado de vainilla; contiene nueces.",
    "d": "Arroz con leche y limón.",
    "e": "A chocolate dessert with walnuts.",
}
SPANISH = "postres sin nueces"
NOTE = "the query looks Spanish: only English is read, so “sin” leaves nothing out; -word does, in any language"


@pytest.mark.parametrize(("query", "language"), QUERIES)
def test_a_language_is_told_by_small_words_and_letters(query, language):
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
        (SPANISH, "sin"),
        ("recetas que no llevan huevo", "que no"),
        ("Stellen Ohne Nachtschicht", "Ohne"),
        ("restaurantes con terraza en Madrid", None),
        ("отели без бассейна", None),
    ],
)
def test_the_word_that_denies_is_named(query, word):
    assert denying_word(query, foreign_language(query)) == word


@pytest.mark.parametrize("query", [SPANISH, "Hotels mit Garten und Pool", "отели без бассейна", "島国"])
@pytest.mark.parametrize("has_reader", [True, False])
def test_nothing_of_it_is_read(query, has_reader, monkeypatch):
    if not has_reader:
        monkeypatch.setattr(query_reader, "open_reader", lambda adapters: None)
    found = read(query)
    assert (found.operators, found.excluded, found.alternatives) == ((), (), ())
    assert [[part.text for part in group] for group in found.conditions.wanted] == [[query]]
    assert found.decided_by == "the query's language"
    assert len(found.notes) == 1
    assert "-word" in found.notes[0]
    assert found.as_json()["notes"] == list(found.notes)


def test_what_is_typed_is_read_in_any_language():
    found = read("postres con chocolate -nueces")
    assert [span.text for span in found.excluded] == ["nueces"]
    assert found.notes == ()
    assert read("postres sin azúcar -nueces").notes == (NOTE,)


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
