"""`-word`, `NOT word` and `-"a phrase"` are typed by people who mean it: what affirms the word is left out."""

import json
from collections import Counter

import numpy as np
import pytest
from store_fixtures import DATABASES, KINDS, marked, place_of, skip_without

from boolbert import obey
from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocuments, Passages
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.retrieval.index import build_index
from boolbert.retrieval.models import default_model, load_encoder
from boolbert.retrieval.stores import index_documents, open_store
from boolbert.search import BoolSearcher, explain

CURRIES = {
    "Thai green curry": "A green curry with chicken and aubergines.",
    "Chickpea curry": "A mild curry of chickpeas, tomatoes and spinach.",
    "Butter curry": "Chicken thighs in a rich curry sauce with butter.",
    "Massaman": "A curry with potatoes and peanuts. It contains no chicken.",
    "Goan curry": "A sour curry with prawns and coconut.",
    "Katsu curry": "Breaded pork with a thick curry sauce.",
    "Dal": "A curry of red lentils, with rice.",
    "Rendang": "A dry curry of beef and coconut milk.",
    "Coronation": "Cold chicken in a curry mayonnaise.",
    "Apple pie": "A pie with apples and cinnamon.",
}
CHICKEN = {"Thai green curry", "Butter curry", "Coronation"}


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("curries"), default_model("cpu")
    rows = [{"title": title, "text": text} for title, text in CURRIES.items()]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return BoolSearcher(model, build_index(folder / "docs.jsonl", folder / "index", model, progress=False))


@pytest.mark.parametrize("query", ["curry -chicken", "curry NOT chicken", 'curry -"chicken"'])
@pytest.mark.parametrize("read", [0, 20])
def test_what_affirms_the_word_is_left_out_and_counted(searcher, query, read):
    answer = searcher.search(query, 10, read=read)
    assert {hit.title for hit in answer} == CURRIES.keys() - CHICKEN
    assert answer.left_out == 3
    assert {hit.title for hit in answer.unsure} == CHICKEN
    assert answer.left_out_line == "3 documents that have “chicken” were left out"
    assert answer.as_json()["left_out"] == 3


@pytest.mark.parametrize("query", ["-chicken", "NOT chicken"])
@pytest.mark.parametrize("read", [0, 20])
def test_a_query_that_only_leaves_out_asks_for_all_the_rest(searcher, query, read):
    answer = searcher.search(query, 10, read=read)
    assert {hit.title for hit in answer} == CURRIES.keys() - CHICKEN
    assert answer.left_out == 3
    several = searcher.search("-chicken -coconut", 10)
    assert {hit.title for hit in several} == CURRIES.keys() - CHICKEN - {"Goan curry", "Rendang"}


def test_one_vector_needs_something_to_look_for(searcher):
    embedder = obey(lambda texts: np.ones((len(texts), 4), np.float32))
    line = "the query '-chicken' only says what to leave out; say what to look for as well"
    for ask in (
        embedder.encode_query,
        embedder.search_vectors,
        lambda query: searcher.search(query, 10, evidence=False),
        lambda query: searcher.rows(query, 10, evidence=False),
    ):
        with pytest.raises(RetrievalError, match=line):
            ask("-chicken")


def test_a_document_that_denies_it_stays(searcher):
    assert "Massaman" in [hit.title for hit in searcher.search("curry -chicken", 5)]


def test_a_phrase_is_left_out_where_all_its_words_stand(searcher):
    titles = {hit.title for hit in searcher.search('curry -"coconut milk"', 10)}
    assert "Rendang" not in titles
    assert "Goan curry" in titles


def test_a_sentence_only_ranks_lower(searcher):
    answer = searcher.search("curry without chicken", 10)
    assert len(answer) == 10
    assert answer.left_out == 0
    assert not CHICKEN & {hit.title for hit in answer.hits[:5]}


def test_without_evidence_nothing_is_left_out_and_a_line_says_so(searcher):
    answer = searcher.search("curry -chicken", 10, evidence=False)
    assert len(answer) == 10
    assert answer.notes == ["nothing is left out: without evidence, what is near to “chicken” only ranks lower"]
    assert searcher.search("curry -chicken", 10).notes == []
    assert searcher.search("curry without chicken", 10, evidence=False).notes == []
    assert searcher.search("curry -chicken", 10, operators=[]).notes == []


def test_evaluation_leaves_out_the_same(searcher):
    assert searcher.rows("curry -chicken", 10) == [hit.row for hit in searcher.search("curry -chicken", 10)]


def test_the_explanation_says_so(searcher):
    notes = explain(searcher, "curry -chicken", 10).notes
    assert any(note == "3 documents that have “chicken” were left out." for note in notes)


def test_the_command_line_lists_them(searcher, capsys):
    folder = str(searcher.index.folder)
    assert main(["search", "curry -chicken", "--index", folder, "--unsure"]) == 0
    shown = capsys.readouterr().out
    assert "3 documents that have “chicken” were left out" in shown
    assert all(title in shown.split("left out:")[1] for title in CHICKEN)
    assert main(["search", "curry without chicken", "--index", folder, "--unsure"]) == 2
    assert "--unsure lists what --violations or a typed -word leaves out" in capsys.readouterr().err


@pytest.mark.parametrize("all_at_once", [True, False])
def test_all_that_have_the_word_are_counted_whatever_is_shown(searcher, monkeypatch, all_at_once):
    if not all_at_once:  # an index so large that only candidates are ranked
        monkeypatch.setattr("boolbert.search.rank.ALL", 2)
        monkeypatch.setattr("boolbert.search.rank.DEPTH", 3)
    for k in (1, 2, 7):
        answer = searcher.search("curry -chicken", k)
        assert (len(answer), answer.left_out, answer.counted_all) == (k, 3, True)
        assert len(answer.unsure) <= k
    assert searcher.search("curry -chicken -beef", 1).left_out == 4


def test_the_command_line_says_how_many_more_there_are(searcher, capsys):
    asked = ["search", "curry -chicken", "--index", str(searcher.index.folder), "--unsure", "-k", "1"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "3 documents that have “chicken” were left out" in shown
    assert shown.rstrip().endswith("and 2 more")
    notes = explain(searcher, "curry -chicken", 1).notes
    assert any(note == "3 documents that have “chicken” were left out." for note in notes)


def test_a_document_in_passages_counts_once(tmp_path):
    model = default_model("cpu")
    long = "It has chicken in it and a rich sauce of butter. " * 12
    rows = [{"id": "a", "text": f"Butter curry. {long}"}, {"id": "b", "text": "Dal is a curry of red lentils."}]
    documents = OwnDocuments(rows, id="id", progress=False, passages=Passages(words=20, overlap=5))
    searcher = BoolSearcher(model, build_index(documents, tmp_path / "index", model, progress=False))
    answer = searcher.search("curry -chicken", 1)
    assert ([hit.title for hit in answer], answer.left_out, len(answer.unsure)) == (["b"], 1, 1)


@pytest.mark.parametrize("kind", marked(DATABASES))
def test_a_database_that_found_some_says_at_least(kind, tmp_path, searcher, monkeypatch):
    skip_without(kind)
    store = open_store(place_of(kind, tmp_path))
    rows = [{"id": title, "title": title, "text": text} for title, text in CURRIES.items()]
    index_documents(OwnDocuments(rows, id="id", progress=False), store, searcher.model, progress=False)
    asked = BoolSearcher(searcher.model, store)
    assert asked.search("curry -chicken", 1).left_out_line == "3 documents that have “chicken” were left out"
    monkeypatch.setattr("boolbert.search.document_search.DEPTH", 2)
    monkeypatch.setattr("boolbert.search.document_search.PART_DEPTH", 2)
    answer = asked.search("curry -chicken", 1)
    assert answer.left_out_line.startswith("at least ")
    assert answer.as_json()["counted_all"] is False
    store.close()


@pytest.mark.parametrize("kind", marked(DATABASES))
def test_a_database_is_asked_once_for_what_all_hits_share(kind, tmp_path, searcher, monkeypatch):
    skip_without(kind)
    store, calls = open_store(place_of(kind, tmp_path)), Counter()
    rows = [{"id": title, "title": title, "text": text} for title, text in CURRIES.items()]
    index_documents(OwnDocuments(rows, id="id", progress=False), store, searcher.model, progress=False)
    asked = BoolSearcher(searcher.model, store)

    def count(name):
        own = getattr(store, name)
        monkeypatch.setattr(store, name, lambda: calls.update([name]) or own())

    count("about")
    count("statistics")

    def counted(query, k, **options):
        calls.clear()
        asked.search(query, k, **options)
        return dict(calls)

    counted("curry", 1)
    assert counted("curry", 9)["about"] == counted("curry", 1)["about"]
    assert counted("curry", 9, evidence=False)["about"] == counted("curry", 1, evidence=False)["about"]
    assert counted("curry", 1)["statistics"] < counted("curry -chicken", 1)["statistics"]
    store.close()


# What no index term says: signs, single letters and digits, small words, capitals, scripts without spaces.
SIGNS = {
    "AT&T": "A phone plan by AT&T, with roaming.",
    "At the top": "A phone plan that is at the top of our list.",
    "Not AT&T": "A phone plan for every network but not AT&T.",
    "C++": "A course on C++ for engineers.",
    "C#": "A course on C# and its libraries.",
    "C": "A course on C for beginners.",
    ".NET": "A course on .NET and its runtime.",
    "Net": "A course on the net and the web.",
    "Disney+": "A subscription to Disney+, for a year.",
    "Disney": "A subscription to a magazine on Disney.",
    "R&D": "A job in R & D, near the lake.",
    "IT": "A job in IT, with a pension.",
    "Sales": "A job in sales. It pays well.",
    "3.5": "A release of the tool: version 3.5.",
    "13.5": "A release of the tool: version 13.5 or 3.55.",
    "Hamlet": "A speech from a play: To be, or not to be, that is the question.",
    "Macbeth": "A speech from a play that is not to be missed.",
    "Vitamin C": "Tablets with vitamin C and zinc.",
    "Vitamin D": "Tablets with vitamin D for cats.",
    "T-shirt": "Clothes: T-shirts of cotton.",
    "Shirt": "Clothes: a shirt of linen.",
    "WHO": "A report by the WHO on malaria.",
    "Press": "A report by those who were there.",
    "戦争": "第二次世界大戦の戦争映画",
    "家族": "家族についての映画",
}
TYPED = {
    'phone plans -"AT&T"': {"AT&T"},
    "phone plans -AT&T": {"AT&T"},
    "phone plans NOT AT&T": {"AT&T"},
    'courses -"C++"': {"C++"},
    "courses -C++": {"C++"},
    'courses -"C#"': {"C#"},
    "courses -C# -C++": {"C#", "C++"},
    'courses -"C"': {"C", "Vitamin C"},
    'courses -".NET"': {".NET"},
    'subscriptions -"Disney+"': {"Disney+"},
    "subscriptions -Disney+": {"Disney+"},
    "subscriptions -Disney": {"Disney+", "Disney"},
    'jobs -"R&D"': {"R&D"},
    'jobs -"IT"': {"IT"},
    "jobs -IT": {"IT"},
    'jobs -"it"': {"IT", "Sales"},
    'releases -"3.5"': {"3.5"},
    'speeches -"to be or not to be"': {"Hamlet"},
    'tablets -"vitamin C"': {"Vitamin C"},
    "clothes -T-shirt": {"T-shirt"},
    'reports -"WHO"': {"WHO"},
    "映画 -戦争": {"戦争"},
}


@pytest.fixture(scope="module")
def signs(tmp_path_factory):
    rows = [{"id": title, "title": title, "text": text} for title, text in SIGNS.items()]
    documents, model = OwnDocuments(rows, id="id", progress=False), default_model("cpu")
    folder = tmp_path_factory.mktemp("signs") / "index"
    return BoolSearcher(model, build_index(documents, folder, model, progress=False))


def left_out_by(searcher, query, **how):
    answer = searcher.search(query, 50, **how)
    out = SIGNS.keys() - {hit.title for hit in answer}
    assert (answer.left_out, {hit.title for hit in answer.unsure}) == (len(out), out)
    return out


@pytest.mark.parametrize("read", [0, 20])
@pytest.mark.parametrize("query", TYPED)
def test_what_no_index_term_says_is_looked_for_as_it_is_typed(signs, query, read):
    assert left_out_by(signs, query, read=read) == TYPED[query]


def test_the_explanation_counts_it(signs):
    notes = explain(signs, 'phone plans -"AT&T"', 10).notes
    assert "1 document that has “AT&T” was left out." in notes


@pytest.mark.parametrize("kind", marked(KINDS))
def test_every_store_leaves_it_out(kind, tmp_path, signs):
    skip_without(kind)
    store = open_store(place_of(kind, tmp_path))
    rows = [{"id": title, "title": title, "text": text} for title, text in SIGNS.items()]
    index_documents(OwnDocuments(rows, id="id", progress=False), store, signs.model, progress=False)
    asked = BoolSearcher(signs.model, store)
    for query in ('phone plans -"AT&T"', "courses -C++", 'jobs -"IT"', 'tablets -"vitamin C"'):
        assert left_out_by(asked, query) == TYPED[query]
    store.close()


def test_reranking_leaves_it_out():
    encoder = obey(load_encoder(resolve_encoder().path, device="cpu", quiet=True))
    texts = list(SIGNS.values())
    for query, out in TYPED.items():
        assert {one.text for one in encoder.rerank(query, texts)} == set(texts) - {SIGNS[title] for title in out}


def test_of_a_large_index_those_that_were_looked_at_are_counted(signs, monkeypatch):
    monkeypatch.setattr("boolbert.search.rank.ALL", 2)
    monkeypatch.setattr("boolbert.search.rank.DEPTH", 6)
    answer = signs.search('phone plans -"AT&T"', 3)
    assert "AT&T" not in {hit.title for hit in answer}
    assert answer.left_out_line == "at least 1 document that has “AT&T” was left out"


def test_another_passage_of_the_document_counts(tmp_path, monkeypatch):
    model = default_model("cpu")
    long = "A phone plan with roaming and a rich choice of numbers. " * 6
    rows = [{"id": "a", "text": f"{long}{'Bills come by post. ' * 12}The network is AT&T."}]
    rows += [{"id": f"b{number}", "text": f"{long}Plan {number}."} for number in range(9)]
    documents = OwnDocuments(rows, id="id", progress=False, passages=Passages(words=20, overlap=5))
    searcher = BoolSearcher(model, build_index(documents, tmp_path / "index", model, progress=False))
    monkeypatch.setattr("boolbert.search.rank.ALL", 2)
    monkeypatch.setattr("boolbert.search.rank.DEPTH", 30)
    answer = searcher.search('phone plan with roaming -"AT&T"', 20)
    assert "a" not in {hit.title for hit in answer}
    assert answer.left_out == 1
