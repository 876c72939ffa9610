"""Systems against slow versions of their scores, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from eval_fixtures import answers, save_model, write_quest

from boolbert.boolean.marks import Part
from boolbert.core.errors import EvaluationError, RetrievalError
from boolbert.data.tasks import Question, quest_task
from boolbert.eval.results import measure, pair_accuracy
from boolbert.eval.systems import BM25, Decomposition, Dense, Faiss, Subtraction, System
from boolbert.retrieval.encode import encode_corpus
from boolbert.retrieval.metrics import quest_metrics
from boolbert.retrieval.models import bool_bert, load_encoder, query_parameters


@pytest.fixture
def task(tmp_path):
    return quest_task(write_quest(tmp_path / "data"), "dev", progress=False)


def make(tmp_path, tokenizer, tiny_config, task, boolean):
    folder = save_model(tmp_path / f"model-{boolean}", tokenizer, tiny_config, boolean=boolean)
    model = load_encoder(str(folder), device="cpu", quiet=True)
    return model, encode_corpus(model, task.corpus, tmp_path / f"vectors-{boolean}")


def test_the_task_knows_what_its_queries_exclude(task):
    assert [set(rows.tolist()) for rows in task.gold][3] == answers("_ that are not _", ["films", "war"]) == {0, 2, 4}
    assert task.violating[3].tolist() == [1, 3, 5]
    assert task.violating[0].tolist() == []  # no operator to break
    assert task.negated[3].tolist() == [1, 3, 5, 7, 9]
    assert task.negated[2].tolist() == []
    assert len(task.pairs) == 2
    assert task.pairs[0].questions[1].text == "films that are also war"
    assert task.pairs[0].rows == (0, 1)


def test_gates_make_a_difference_where_they_should(tmp_path, tokenizer, tiny_config, task):
    model, vectors = make(tmp_path, tokenizer, tiny_config, task, boolean=True)
    given = Dense("given", model, vectors, "given")
    np.testing.assert_allclose(
        given.encode(task.questions).numpy(),
        model.encode_query([q.text for q in task.questions], operators=[list(q.operators) for q in task.questions]),
        atol=1e-5,
    )
    texts = [question.text for question in task.questions]
    config = bool_bert(model).config
    found = {}
    for own in ("learned", "cue"):
        config.gate = own
        found[own] = model.encode_query(texts)
    assert not np.allclose(found["learned"], found["cue"])
    for own in ("learned", "cue"):
        config.gate = own
        for gate in ("learned", "cue", None):
            system = Dense("d", model, vectors, gate)
            np.testing.assert_allclose(system.encode(task.questions), found[gate or own], atol=1e-5)
            weights = zip(model.parameters(), system.model.parameters(), strict=True)
            assert all(one is two for one, two in weights)  # another gate takes no memory
            assert config.gate == own  # measuring a model never changes it
    with pytest.raises(EvaluationError, match="has no template"):
        given.encode([Question("q", "films")])
    with pytest.raises(RetrievalError, match="must be one of given, learned, cue"):
        Dense("d", model, vectors, "label")
    both = sum(weight.numel() for weight in model.parameters())
    assert 0 < query_parameters(model) < both


def test_decomposition_and_subtraction_are_their_formulas(tmp_path, tokenizer, tiny_config, task):
    model, vectors = make(tmp_path, tokenizer, tiny_config, task, boolean=False)
    dense = Dense("plain", model, vectors)
    documents = np.asarray(vectors[0:10])

    def score(text):
        return documents @ model.encode_query(text)

    question = Question(
        "q",
        "films that are war but not a",
        ("and", "not"),
        (Part("", 0, 5, "films"), Part("and", 15, 18, "war"), Part("not", 27, 28, "a")),
    )
    either = Question("o", "films or books", ("or",), (Part("", 0, 5, "films"), Part("or", 9, 14, "books")))
    for conjunction, join in (("sum", np.add), ("min", np.minimum)):
        system = Decomposition("d", dense, gold=True, conjunction=conjunction, not_weight=0.5)
        found = system.scorer([question, either])(2, 9).numpy()
        wanted = join(score("films"), score("war")) - 0.5 * score("a")
        np.testing.assert_allclose(found[0], wanted[2:9], atol=1e-5)
        np.testing.assert_allclose(found[1], np.maximum(score("films"), score("books"))[2:9], atol=1e-5)
    less = Subtraction("s", dense, 0.5).scorer([question, either])(0, 10).numpy()
    np.testing.assert_allclose(less[0], score(question.text) - 0.5 * score("a"), atol=1e-5)
    np.testing.assert_allclose(less[1], score(either.text), atol=1e-5)
    unmarked = [replace(one, parts=one.parts[:1]) for one in (question, either)]
    read, marked = (
        Decomposition("d", dense, gold=gold, not_weight=0.5).scorer(unmarked)(0, 10).numpy() for gold in (False, True)
    )
    np.testing.assert_allclose(marked, [score("films")] * 2, atol=1e-5)  # as the data set has them
    np.testing.assert_allclose(read[0], score("films") + score("war") - 0.5 * score("a"), atol=1e-5)
    np.testing.assert_allclose(read[1], np.maximum(score("films"), score("books")), atol=1e-5)
    with pytest.raises(EvaluationError, match="must be one of"):
        Decomposition("d", dense, conjunction="product")


def test_bm25_finds_words_and_survives_unknown_ones(task):
    pytest.importorskip("bm25s")
    system = BM25(task.corpus)
    scores, rows = system.search([Question("a", "books"), Question("b", "zebra"), Question("c", "")], 4)
    assert set(rows[0].tolist()) == {6, 7, 8, 9}
    assert rows[1].tolist() == [0, 1, 2, 3]  # nothing in common: all tie, lower rows first
    assert scores[2].tolist() == [0, 0, 0, 0]


def test_pairs_are_right_for_a_system_that_knows_negation(task):
    class Knows(System):
        name, parameters, documents = "knows", 0, 10

        def __init__(self, sign):
            self.sign = sign

        def scorer(self, questions):
            war = torch.tensor([float(row in (1, 3, 5, 7, 9)) for row in range(10)])
            signs = torch.tensor([self.sign if "not" in question.text else 1.0 for question in questions])
            return lambda start, end: signs[:, None] * war[None, start:end]

    for sign, right in ((-1.0, 1), (1.0, 0)):
        values = pair_accuracy(task, Knows(sign))["pairwise_accuracy"]
        np.testing.assert_array_equal(values, [np.nan] * 3 + [right] * 2 + [np.nan])


def test_nan_queries(tmp_path, tokenizer, tiny_config, task):
    model, _ = make(tmp_path, tokenizer, tiny_config, task, boolean=False)
    with torch.no_grad():
        model[0].sub_modules["query"][0].model.embeddings.word_embeddings.weight[:] = float("nan")
    with pytest.raises(EvaluationError, match="vector of query q0 holds NaN"):
        Dense("d", model, np.ones((10, 16), np.float32)).scorer(task.questions)


def test_faiss_is_measured_by_its_own_search(tmp_path, tokenizer, tiny_config, task):
    pytest.importorskip("faiss")
    model, vectors = make(tmp_path, tokenizer, tiny_config, task, boolean=False)
    exact = Dense("exact", model, vectors)
    flat = measure(Faiss("flat", model, vectors, factory="Flat"), task, quest_metrics)
    np.testing.assert_allclose(flat.scores, exact.search(task.questions, 10)[0], atol=1e-5)
    assert flat.per_query["found_of_exact"].tolist() == [1.0] * len(task)

    asked = []

    class Half(Faiss):
        def search(self, questions, k):
            asked.append(len(questions))
            scores, rows = super().search(questions, k)
            rows[:, rows.shape[1] // 2 :] = -1
            return scores, rows

    half = measure(Half("half", model, vectors, factory="Flat"), task, quest_metrics)
    assert half.per_query["found_of_exact"].tolist() == [0.5] * len(task)
    assert half.per_query["recall@10"].mean() < 1  # the rankings, too, are the index's
    assert asked[0] == len(task)
    assert set(asked[1:]) == {1}  # and so is the latency
