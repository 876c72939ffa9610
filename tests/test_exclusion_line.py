"""A line with a stated error rate: how it is chosen, that it keeps its promise, and what is said where it cannot."""

import json
from dataclasses import replace

import numpy as np
import pytest
from framework_fixtures import HOTELS, bag_of_words
from store_fixtures import DATABASES, KINDS, marked, place_of, skip_without

from boolbert.cli.main import main
from boolbert.core import progress
from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.data import DataError, Quest
from boolbert.data.embedded import denials_folder
from boolbert.data.own import OwnDocuments
from boolbert.data.own import exclusions as making
from boolbert.retrieval.document_reader import Said
from boolbert.retrieval.exclusion_line import (
    DEPTHS,
    PROMISES,
    ExclusionLine,
    KnownExclusion,
    calibrated_line,
    losses_of,
)
from boolbert.retrieval.functions import function_model
from boolbert.retrieval.models import default_model
from boolbert.retrieval.stores import index_documents, open_store
from boolbert.search import BoolSearcher, build_index, calibrating
from boolbert.search.answer import promise_of
from boolbert.search.calibrating import calibrate, made_exclusions
from boolbert.search.rank import Ranking
from boolbert.serve.engine import Engine

QUERY = "hotels without a pool"
DENYING = Quest(denials_folder("dev"), progress=False).documents()
DOCUMENTS = [{"title": document.title, "text": document.text} for document in DENYING][:160]
POOL = [row for row, text in enumerate(HOTELS) if "a pool" in text]  # "There is no pool." denies it


def made_up(rng, count, documents=60):
    """Exclusions whose documents have what is excluded with the probability that their features say."""
    known = []
    for _ in range(count):
        features = np.abs(rng.normal(size=(1, 4, documents))).astype(np.float32) * [[[0.3], [0.1], [0.3], [0.1]]]
        logits = np.array([14.0, -6.0, 10.0, -8.0]) @ features[0] - 9
        known.append(KnownExclusion(features, rng.random(documents) < 1 / (1 + np.exp(-logits))))
    return known


def slow_losses(probabilities, has, grid):
    """For each depth and line: return documents one by one, count, and take the worst of all lower lines."""
    table = []
    for depth in DEPTHS:
        worst, row = 0.0, []
        for line in grid:
            returned = [broken for p, broken in zip(probabilities, has, strict=True) if p <= line][:depth]
            worst = max(worst, sum(returned) / len(returned) if returned else 0.0)
            row.append(worst)
        table.append(row)
    return table


def test_losses_are_those_of_returning_documents_one_by_one():
    rng = np.random.default_rng(0)
    for documents in (1, 5, 150):
        probabilities, has = rng.random(documents), rng.random(documents) < 0.3
        grid = np.sort(rng.random(20))
        np.testing.assert_allclose(losses_of(probabilities, has, grid), slow_losses(probabilities, has, grid))


def test_the_promise_is_kept_on_other_queries_and_the_line_is_no_lower_than_it_must_be():
    rng = np.random.default_rng(1)
    shares = {promise: [] for promise in PROMISES}
    for _ in range(6):
        line = calibrated_line(made_up(rng, 300), 60, "encoder")
        asked = made_up(rng, 100)
        for promise, own in zip(PROMISES, line.lines, strict=True):
            if own is not None:
                kept = [one.has[line.probabilities(one.features) <= own][:10] for one in asked]
                shares[promise].append(np.mean([has.mean() if len(has) else 0.0 for has in kept]))
    for promise, found in shares.items():
        assert not found or np.mean(found) <= promise
    assert np.mean(shares[0.1]) > 0.04  # it does not simply leave out everything


def test_the_line_rises_with_the_promise_and_each_feature_speaks_for_what_it_means():
    line = calibrated_line(made_up(np.random.default_rng(2), 300), 60, "encoder")
    lines = [own for own in line.lines if own is not None]
    assert lines == sorted(lines)
    assert len(lines) > 2
    assert [np.sign(weight) for weight in line.weights[:-1]] == [1, -1, 1, -1]


def test_too_few_exclusions_promise_little():
    line = calibrated_line(made_up(np.random.default_rng(3), 12), 60, "encoder")
    assert line.lines[0] is None
    with pytest.raises(RetrievalError, match=r"violations 0\.01 cannot be promised .* by 12 exclusions"):
        line.at(0.01)
    nothing = [KnownExclusion(np.zeros((1, 4, 5), np.float32), np.zeros(5, np.bool_))]
    with pytest.raises(RetrievalError, match="no line can be calibrated"):
        calibrated_line(nothing, 5, "encoder")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "before it is calibrated: boolbert index my_index --calibrate"),
        ({"weights": [1.0]}, "its calibration is damaged; make it again"),
        ({"lines": [0.1, "0.2", None, None, None]}, "is damaged"),
        ({"least": float("nan")}, "is damaged"),
        ({"exclusions": "many"}, "is damaged"),
        ({"documents": "many"}, "is damaged"),
        ({"least": 10**400}, "is damaged"),
        ({"encoder": "another"}, "its calibration is another encoder's; make it again"),
    ],
)
def test_a_missing_damaged_or_foreign_calibration_is_refused(change, message):
    line = calibrated_line(made_up(np.random.default_rng(4), 50), 60, "encoder").as_json()
    content = json.loads(json.dumps(line))
    assert ExclusionLine.of_json(content, "my_index", "encoder").exclusions == 50
    with pytest.raises(RetrievalError, match=message):
        ExclusionLine.of_json(None if change is None else {**content, **change}, "my_index", "encoder")


@pytest.fixture
def model():
    return function_model(bag_of_words, "bag-of-words")


@pytest.fixture
def index(tmp_path, model):
    return build_index(OwnDocuments(HOTELS, progress=False), tmp_path / "index", model, progress=False)


OTHERS = "the line was calibrated on other documents: some were added, replaced or removed since"


def exclusions(key=int):
    keys = [key(row) for row in range(len(HOTELS))]
    words = ("a pool", "a garden", "pets", "the sea", "the station", "the airport", "the hills", "the old town")
    found = []
    for word in words:
        rows = [row for row, text in enumerate(HOTELS) if word in text.lower() and f"no {word}" not in text]
        found += [
            making.Exclusion(f"{kind} hotels without {word}", frozenset(keys[row] for row in rows))
            for kind in ("old", "new", "quiet", "large", "small")
        ]
    return found


def test_documents_beyond_the_line_are_left_out_and_listed_apart(index, model):
    searcher = BoolSearcher(model, index)
    line = calibrate(searcher, exclusions(), progress=False)
    assert line.documents == len(HOTELS)
    answer = BoolSearcher(model, index.folder).search(QUERY, 40, violations=0.05)  # it is read from the index again
    everything = searcher.search(QUERY, 40)
    assert {hit.row for hit in answer}.isdisjoint(POOL)
    assert {hit.row for hit in answer} | {hit.row for hit in answer.unsure} == {hit.row for hit in everything}
    assert answer.promise.left_out == len(answer.unsure) >= len(POOL)
    assert all(hit.deciding for hit in answer.unsure if hit.row in POOL)
    assert answer.as_json()["promise"]["violations"] == 0.05
    plain = searcher.search("quiet hotels", 40, violations=0.05)
    assert plain.promise.notes == ("nothing is excluded, so nothing was left out",)
    assert len(plain) == 40
    unlike = searcher.search("hotels without zebras", 3, violations=0.05)
    assert "hardly a document says anything" in unlike.promise.notes[0]
    assert unlike.left_out_line.startswith("nothing is promised: hardly a document")
    assert answer.promise.notes == ()
    unread = replace(answer.reading, doubtful="no")
    told = promise_of(searcher._limit(0.05, True), Ranking([], [], 0, {}, evidence=1.0), unread, True)
    assert told.line("pool") == (
        "nothing is promised: “no” may exclude something that was not read; -word says it plainly"
    )


def test_what_the_reader_finds_to_be_there_is_left_out_too(index, model, monkeypatch):
    """ "chopped walnuts" is near to no clause about nuts, and yet they are some."""
    searcher = BoolSearcher(model, index)
    calibrate(searcher, exclusions(), progress=False)
    first = searcher.search(QUERY, 40, violations=0.2)[0]

    def said(reader, documents, question, rows, *_):
        return {row: [Said(float(row == first.row), 0.0, 0.0) for _ in question.parts] for row in rows}

    monkeypatch.setattr("boolbert.search.rank.what_they_say", said)
    found = searcher.search(QUERY, 40, violations=0.2)
    assert first.row not in {hit.row for hit in found}
    assert first.row in {hit.row for hit in found.unsure}


DENIALS = {
    "sweet dishes excluding those without gelatine": "gelatine",
    "dishes that are not gluten-free": "gluten",
    "dishes excluding those that do not contain gluten": "gluten",
}


@pytest.mark.long
@pytest.mark.parametrize("query", DENIALS)
def test_a_promise_is_not_turned_round_by_two_denials(tmp_path, query):
    """No dish is left out because it has what is asked for, and those that lack it do not stand before it."""
    thing = DENIALS[query]
    kinds = (f"Contains {thing}.", f"Without {thing}.", "Made of fruit.")
    texts = [f"A sweet dish number {number}. {kind}" for number in range(20) for kind in kinds]
    model = default_model("cpu")
    searcher = BoolSearcher(
        model, build_index(OwnDocuments(texts, progress=False), tmp_path / "index", model, progress=False)
    )
    has = frozenset(range(0, len(texts), 3))
    made = [
        making.Exclusion(f"{kind} dishes without {thing}", has) for kind in ("sweet", "old", "new") for _ in "12345"
    ]
    calibrate(searcher, made, progress=False)
    found = searcher.search(query, 10, violations=0.2, read=0)
    assert not any("Without" in hit.text for hit in found[:5])
    assert not {hit.row for hit in found.unsure} & has


def test_what_cannot_be_promised_says_so(index, model):
    searcher = BoolSearcher(model, index)
    with pytest.raises(RetrievalError, match=r"before it is calibrated: boolbert index .* --calibrate"):
        searcher.search(QUERY, violations=0.05)
    calibrate(searcher, exclusions(), progress=False)
    with pytest.raises(RetrievalError, match=r"must be one of 0\.01, 0\.02, 0\.05, 0\.1, 0\.2, got 0\.07"):
        searcher.search(QUERY, violations=0.07)
    for options in ({"evidence": False}, {"operators": []}):
        with pytest.raises(RetrievalError, match="needs an index with evidence"):
            searcher.search(QUERY, violations=0.05, **options)


def test_exclusions_are_made_from_the_documents(tmp_path, monkeypatch, model):
    monkeypatch.setattr(making, "QUERIES", 70)
    texts = DOCUMENTS
    index = build_index(OwnDocuments(texts, progress=False), tmp_path / "index", model, progress=False, evidence=False)
    made = made_exclusions(BoolSearcher(model, index))
    assert len(made) > 10
    assert any(" without " in one.query for one in made)
    assert all(0 < len(one.excluded) < len(texts) for one in made)
    with pytest.raises(RetrievalError, match="has no evidence to calibrate"):
        calibrate(BoolSearcher(model, index))


def test_documents_that_are_too_few_to_calibrate_on_are_counted(tmp_path, model):
    few = [{"text": f"Offer {n} of a place called {'abcdefghij'[n % 10] * 4}{n}."} for n in range(46)]
    build_index(OwnDocuments(few, progress=False), tmp_path / "few", model, progress=False)
    with pytest.raises(RetrievalError) as error:
        made_exclusions(BoolSearcher(model, tmp_path / "few"))
    told = f"{tmp_path / 'few'}: cannot be calibrated: its 46 documents give too few exclusions to try; "
    assert str(error.value).startswith(told + "usually 100 or more are needed (")


def test_why_few_documents_cannot_be_calibrated_is_told(tmp_path, monkeypatch, model):
    def odd(documents):
        raise DataError("line 3: no text")

    build_index(OwnDocuments([{"text": "An offer."}], progress=False), tmp_path / "odd", model, progress=False)
    monkeypatch.setattr(calibrating, "make_exclusions", odd)
    with pytest.raises(RetrievalError, match=r"needed \(line 3: no text\)"):
        made_exclusions(BoolSearcher(model, tmp_path / "odd"))


def assert_told(capsys, *begins):
    """A log has lines that begin so, in this order, and no bar."""
    told = capsys.readouterr().err
    assert "\r" not in told
    found = [begin for line in told.splitlines() for begin in begins if line.startswith(begin)]
    assert found == list(begins)
    return told


def test_the_commands(tmp_path, monkeypatch, capsys, run_once):
    def without_onnx(searcher):
        raise RetrievalError("ONNX Runtime is not installed")

    monkeypatch.setattr(BoolSearcher, "use_onnx", without_onnx)
    monkeypatch.setattr(making, "QUERIES", 70)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    model = str(run_once(pooling="mean", similarity="cosine"))
    documents, folder = tmp_path / "hotels.jsonl", str(tmp_path / "index")
    documents.write_text("".join(json.dumps(row) + "\n" for row in DOCUMENTS))
    ask = ["search", "films but not about war", "--index", folder, "--violations", "0.2"]
    capsys.readouterr()
    assert main(["index", str(documents), "--output", folder, "--model", model]) == 0
    assert_told(capsys, "opening the model", "encode: ", "evidence: ")
    assert main(ask) == 2
    assert f"before it is calibrated: boolbert index {folder} --calibrate" in capsys.readouterr().err
    assert main(["index", str(tmp_path), "--calibrate"]) == 2
    assert main(["index", folder, "--calibrate"]) == 0
    shown = ("opening the index and its model", f"making queries from the {len(DOCUMENTS)} documents", "1 of ")
    told = assert_told(capsys, *(f"calibrate: {one}" for one in shown))
    assert "exclusions made from the documents: search --violations can promise at most" in told
    for _ in range(2):  # the same command again encodes nothing, and keeps what was calibrated
        assert main(ask) == 0
        assert "documents were left out; at most 20% of the results should have" in capsys.readouterr().out
        assert main(["index", str(documents), "--output", folder, "--model", model]) == 0
    assert main([*ask[:-2], "--unsure"]) == 2
    assert "--unsure lists what --violations or a typed -word leaves out" in capsys.readouterr().err


def test_the_page_draws_the_line(index, model):
    searcher = BoolSearcher(model, index)
    calibrate(searcher, exclusions(), progress=False)
    engine = Engine(lambda: (searcher, None))
    found = engine.search(QUERY, 10, violations=0.05)
    assert not {change.hit.row for change in found.after} & set(POOL)
    assert any("at most 5% of the results should have" in note for note in found.notes)
    assert found.as_json()["promise"]["violations"] == 0.05
    for wrong in (0.07, "0.05", [0.05], True):
        with pytest.raises(BoolBertError, match=r"violations must be one of 0\.01"):
            engine.search(QUERY, violations=wrong)


@pytest.mark.parametrize("kind", marked(KINDS))
def test_stores_keep_the_line_and_say_when_documents_were_added(tmp_path, model, kind):
    skip_without(kind)
    store = open_store(place_of(kind, tmp_path))
    own = OwnDocuments([{"id": f"h{row}", "text": text} for row, text in enumerate(HOTELS)], id="id", progress=False)
    index_documents(own, store, model, progress=False)
    searcher = BoolSearcher(model, store)
    calibrate(searcher, exclusions("h{}".format), progress=False)
    answer = BoolSearcher(model, store).search(QUERY, 40, violations=0.05)
    assert {hit.id for hit in answer}.isdisjoint({f"h{row}" for row in POOL})
    assert not answer.promise.notes
    calibrated = store.about()
    index_documents(OwnDocuments([{"id": "new", "text": "A new hotel."}], id="id", progress=False), store, model)
    (note,) = BoolSearcher(model, store).search(QUERY, 40, violations=0.05).promise.notes
    assert note == OTHERS
    store.delete(["h0"])  # as many as before, and others
    assert BoolSearcher(model, store).search(QUERY, 40, violations=0.05).promise.notes == (OTHERS,)
    first = OwnDocuments([{"id": "h0", "text": HOTELS[0]}], id="id", progress=False)
    index_documents(first, store, model, progress=False)
    store.delete(["new"])
    if kind in DATABASES:  # they know that documents were written, and not that these are the old ones
        store.note(calibrated)
    assert not BoolSearcher(model, store).search(QUERY, 40, violations=0.05).promise.notes
    other = [{"id": f"h{row}", "text": f"{HOTELS[row]} And more."} for row in range(0, len(HOTELS), 2)]
    index_documents(OwnDocuments(other, id="id", progress=False), store, model, progress=False)
    assert BoolSearcher(model, store).search(QUERY, 40, violations=0.05).promise.notes == (OTHERS,)


def test_documents_that_are_added_during_a_calibration_do_not_lose_it(index, model, monkeypatch):
    """An open searcher, and one that is opened later, say that it is of other documents."""
    searcher, more = BoolSearcher(model, index), OwnDocuments([{"id": "new", "text": "A new hotel."}], id="id")
    ask = calibrating.asked

    def add_meanwhile(asking, exclusion):
        if not (index.folder / "store.json").exists():
            index_documents(more, open_store(index.folder), model, progress=False)
        return ask(asking, exclusion)

    monkeypatch.setattr(calibrating, "asked", add_meanwhile)
    calibrate(searcher, exclusions(), progress=False)
    for one in (searcher, BoolSearcher(model, index.folder)):
        assert one.search(QUERY, 40, violations=0.05).promise.notes == (OTHERS,)


def test_nothing_is_calibrated_where_nothing_is_left(index, model, capsys, monkeypatch):
    monkeypatch.setattr("boolbert.search.searcher.load_model", lambda *_, **__: model)
    store = open_store(index.folder)
    ids = list(store.snapshot().row_of)
    assert main(["index", "--remove", *ids, "--output", str(index.folder), "--calibrate"]) == 2
    assert "has no documents with a word in them, so nothing to calibrate on" in capsys.readouterr().err
    assert store.count() == 0


def test_what_is_left_is_calibrated_after_a_removal(index, model, capsys, monkeypatch):
    monkeypatch.setattr("boolbert.search.searcher.load_model", lambda *_, **__: model)
    monkeypatch.setattr(calibrating, "made_exclusions", lambda searcher: exclusions(ids.__getitem__))
    ids = list(open_store(index.folder).snapshot().row_of)
    assert main(["index", "--remove", ids[-1], "--output", str(index.folder), "--calibrate"]) == 0
    assert "calibrated on 40 exclusions" in capsys.readouterr().err
    searcher = BoolSearcher(model, index.folder)
    assert searcher.line.documents == len(HOTELS) - 1
    assert searcher.documents.was_calibrated(searcher.line)
