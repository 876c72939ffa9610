"""Samplers: what they promise, against slow and obvious versions; the same whatever the ranks, and from any step on."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boolbert.boolean import TEMPLATES
from boolbert.data import DataError, DataWarning, Gold, HardNegatives, Query, TrainingSampler

RNG = np.random.default_rng(0)
DOCUMENTS = 60
GOLD = Gold([RNG.choice(DOCUMENTS, RNG.integers(1, 9), replace=False) for _ in range(22)], DOCUMENTS)
POOLS = HardNegatives.from_listed(Gold([RNG.choice(DOCUMENTS, 6, replace=False) for _ in GOLD], DOCUMENTS), GOLD)


def same(one, other):
    names = ("queries", "positives", "negatives", "hard")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def make(**changes):
    settings = {"batch_size": 6, "random_negatives": 3, "hard": POOLS, "hard_negatives": 2, "seed": 7}
    return TrainingSampler(GOLD, **(settings | changes))


@pytest.fixture
def sampler():
    return make()


def test_an_epoch_visits_each_query_once_in_an_order_of_its_own(sampler):
    epochs = [np.concatenate([batch.queries for batch in sampler.batches(epoch)])[: len(GOLD)] for epoch in range(3)]
    for queries in epochs:
        assert sorted(queries) == list(range(len(GOLD)))
    assert len({tuple(queries) for queries in epochs}) == 3


def test_every_batch_is_full_and_the_last_one_takes_queries_of_the_next_epoch(sampler):
    batches = list(sampler.batches(0))
    assert [len(batch) for batch in batches] == [6] * 4  # 22 queries
    last, following = batches[-1], sampler.batch(1, 0)
    assert len(set(last.queries)) == 6
    expected = [query for query in following.queries if query not in last.queries[:4]][:2]
    assert last.queries[4:].tolist() == expected
    assert last.positives[4] == sampler.draw(1, expected[0])[0]
    few = TrainingSampler(Gold([[0], [1], [2]], 9), batch_size=8, random_negatives=1)
    assert [sorted(batch.queries) for batch in few.batches(5)] == [[0, 1, 2]]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_the_processes_share_out_the_same_batches(sampler, world_size):
    for step in range(sampler.steps_per_epoch):
        whole = sampler.batch(1, step)
        shards = [whole.shard(rank, world_size) for rank in range(world_size)]
        assert np.array_equal(np.concatenate([shard.queries for shard in shards]), whole.queries)
        assert np.array_equal(np.concatenate([shard.negatives for shard in shards]), whole.negatives)
        for rank in range(world_size):
            rows, targets = whole.gathered(rank, world_size)
            assert np.array_equal(rows, np.concatenate([shard.documents() for shard in shards]))
            assert np.array_equal(rows[targets], shards[rank].positives)


def test_every_process_and_every_run_draws_the_same(sampler):
    assert not same(sampler.batch(0, 0), make(seed=8).batch(0, 0))
    assert np.array_equal(make(batch_size=2).batch(0, 0).negatives, sampler.batch(0, 0).negatives[:2])
    assert [sampler.draw(5, query)[0] for query in range(6)] == [17, 53, 17, 40, 45, 50]
    assert sampler.draw(5, 0)[1].tolist() == [57, 24, 5, 55, 3]


def test_an_epoch_resumes_at_any_step(sampler):
    again = make()
    whole = list(sampler.batches(2))
    for step in reversed(range(sampler.steps_per_epoch)):
        assert same(again.batch(2, step), whole[step])


def test_a_fresh_positive_at_every_epoch_and_each_gold_equally_often(sampler):
    for query, gold in enumerate(GOLD):
        positives = [sampler.draw(epoch, query)[0] for epoch in range(3 * len(gold))]
        assert Counter(positives) == dict.fromkeys(gold.tolist(), 3)
        assert all(a != b for a, b in pairwise(positives)) or len(gold) == 1
    firsts = Counter(TrainingSampler(Gold([[3, 5, 8]], 20), seed=seed).draw(0, 0)[0] for seed in range(300))
    assert all(70 < count < 130 for count in firsts.values())


def test_negatives_are_distinct_and_never_gold(sampler):
    for epoch in range(20):
        for batch in sampler.batches(epoch):
            for query, negatives, hard in zip(batch.queries, batch.negatives, batch.hard, strict=True):
                assert len(set(negatives)) == 5
                assert not set(negatives) & set(GOLD[query])
                pool = {row for rows in POOLS[query] for row in rows}
                assert set(negatives[hard]) <= pool
                assert hard.sum() == min(2, len(pool))


def test_random_negatives_are_uniform_over_all_that_is_not_gold():
    sampler = TrainingSampler(Gold([[0, 3, 4, 9]], documents=10), random_negatives=2)
    counts = Counter(int(row) for epoch in range(3000) for row in sampler.draw(epoch, 0)[1])
    assert sorted(counts) == [1, 2, 5, 6, 7, 8]
    assert all(900 < count < 1100 for count in counts.values())


def test_hard_negatives_come_in_equal_shares_from_each_pool():
    pools = HardNegatives([[np.array([10], np.int32), np.arange(20, 40, dtype=np.int32)]])
    sampler = TrainingSampler(Gold([[0]], 50), hard=pools, hard_negatives=1, random_negatives=0)
    small = sum(int(sampler.draw(epoch, 0)[1][0]) == 10 for epoch in range(600))
    assert 230 < small < 370
    sampler = TrainingSampler(Gold([[0]], 50), hard=pools, hard_negatives=4, random_negatives=0)
    assert 10 in sampler.draw(0, 0)[1]
    assert sampler.draw(0, 0)[2] == 4


@given(st.data())
@settings(max_examples=60)
def test_even_the_last_possible_negative_is_found(data):
    documents = data.draw(st.integers(2, 12))
    gold = data.draw(st.sets(st.integers(0, documents - 1), min_size=1, max_size=documents - 1))
    others = set(range(documents)) - gold
    pool = np.array(sorted(data.draw(st.sets(st.sampled_from(sorted(others))))), dtype=np.int32)
    hard = min(2, len(others))
    sampler = TrainingSampler(
        Gold([sorted(gold)], documents),
        hard=HardNegatives([[pool]]),
        hard_negatives=hard,
        random_negatives=len(others) - hard,
        seed=data.draw(st.integers(0, 2**64 - 1)),
    )
    assert set(sampler.draw(data.draw(st.integers(0, 10**6)), 0)[1].tolist()) == others


@given(st.data())
@settings(max_examples=60)
def test_masks_against_sets(data):
    sets = data.draw(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=6))
    gold = Gold([sorted(rows) for rows in sets], documents=12)
    queries = data.draw(st.lists(st.integers(0, len(sets) - 1), min_size=1, max_size=5))
    rows = data.draw(st.lists(st.integers(0, 11), min_size=len(queries), max_size=9))
    mask = gold.false_negatives(queries, rows, targets=np.arange(len(queries)))
    for i, query in enumerate(queries):
        assert mask[i].tolist() == [row in sets[query] and i != j for j, row in enumerate(rows)]


SETS = {"A": {0, 1, 2, 3, 4}, "B": {3, 4, 5, 6, 0}, "C": {0, 4, 6, 7, 1}}
VIOLATORS = {  # by hand, before the gold is taken out
    "_": [],
    "_ or _": [],
    "_ or _ or _": [],
    "_ that are not _": [{0, 3, 4}],
    "_ that are also _": [{1, 2}, {5, 6}],
    "_ that are also both _ and _": [{3}, {1}, {6}],
    "_ that are also _ but not _": [{0, 4}, {1, 2}, {5, 6}],
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_operator_violating_negatives(template):
    names = tuple("ABC"[: template.count("_")])
    query = Query("q", docs=(), template=template, atoms=names)
    atoms = {name: np.array(sorted(rows)) for name, rows in SETS.items()}
    pools = HardNegatives.from_atoms([query], atoms, Gold([[]], 10))
    assert [set(pool.tolist()) for pool in pools[0]] == VIOLATORS[template]
    some = {row for pool in VIOLATORS[template] for row in pool if row % 2}
    less = HardNegatives.from_atoms([query], atoms, Gold([sorted(some)], 10))
    assert {row for pool in less[0] for row in pool.tolist()}.isdisjoint(some)


def test_where_no_document_has_two_of_three_one_of_three_serves():
    query = Query("q", docs=(), template="_ that are also both _ and _", atoms=("A", "B", "C"))
    atoms = {"A": np.array([0, 1]), "B": np.array([0, 2]), "C": np.array([0, 3])}
    pools = HardNegatives.from_atoms([query], atoms, Gold([[0]], 5))
    assert [pool.tolist() for pool in pools[0]] == [[1], [2], [3]]


def test_what_has_no_violators_gets_random_negatives():
    atoms = {"A": np.array([0]), "B": np.array([1])}
    queries = [
        Query("q", docs=(), template="_ or _", atoms=("A", "B")),
        Query("q", docs=(), template="_ that are not _"),
        Query("q", docs=(), template="_ that are not _", atoms=("A", "B")),
        Query("q", docs=()),
    ]
    gold = Gold([[0]] * 4, 9)
    pools = HardNegatives.from_atoms(queries, atoms, gold)
    (batch,) = TrainingSampler(gold, hard=pools, hard_negatives=2, random_negatives=1).batches(0)
    assert batch.negatives.shape == (4, 3)
    assert not batch.hard.any()
    bad = Query("q", docs=(), template="_ that are not _", atoms=("A", "X"), where="here:1")
    with pytest.raises(DataError, match=r"here:1: field 'metadata.atoms' names 'X', which the atomic sets lack"):
        HardNegatives.from_atoms([bad], atoms, Gold([[0]], 9))


def test_queries_without_gold_are_left_out_with_a_warning():
    with pytest.warns(DataWarning, match="1 of 3 queries have no gold document in the corpus: they are left out"):
        sampler = TrainingSampler(Gold([[1], [], [2]], 30))
    assert sorted(next(sampler.batches(0)).queries) == [0, 2]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda gold: TrainingSampler(gold), "leaves fewer than the 5 negatives asked for"),
        (lambda gold: TrainingSampler(Gold([[]], 9)), "none of the 1 queries has a gold document"),
        (lambda gold: TrainingSampler(gold, random_negatives=1).batch(0, 0).shard(2, 2), "rank must be 0 to 1, got 2"),
        (lambda gold: TrainingSampler(gold, hard_negatives=1), "hard_negatives needs `hard`"),
        (lambda gold: Gold([[4]], 4), "gold rows must be"),
    ],
)
def test_settings_that_cannot_work(make, problem):
    with pytest.raises(ValueError, match=problem):
        make(Gold([[0], [1], [2]], 4))
