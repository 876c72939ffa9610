"""Many threads ask one searcher: no error, and the answers of one thread."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from store_fixtures import KINDS, marked, place_of, skip_without, write_films

from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores import index_documents, open_store
from boolbert.search import BoolSearcher, build_index

QUERIES = [
    f"{first} {joint} {second}"
    for first, second in (("films", "war"), ("books about war", "books in c"), ("a", "war"))
    for joint in ("or", "but not", "in")
]
WHERE = (None, "year > 1970", "genres = drama")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["index", *marked(KINDS)])
def test_sixteen_threads_get_the_answers_of_one(kind, tmp_path, run_once, load_once):
    """Through `BoolSearcher`: NOT, OR, filters, and the first calls, which open files and fill caches, at once."""
    skip_without(kind)
    model = load_once(run_once(branches=4))
    films = OwnDocuments(write_films(tmp_path / "films.jsonl", 100), progress=False)
    if kind == "index":
        build_index(films, tmp_path / "index", model, progress=False)
    else:
        store = open_store(place_of(kind, tmp_path))
        index_documents(films, store, model, batch=64, progress=False)
    source = (lambda: tmp_path / "index") if kind == "index" else (lambda: store)
    asked = [(query, where) for query in QUERIES for where in WHERE]

    def answers(searcher, threads, times):
        with ThreadPoolExecutor(threads) as pool:
            found = pool.map(lambda pair: searcher.search(pair[0], 10, where=pair[1]), asked * times)
            return [[(hit.title, round(hit.score, 5)) for hit in answer] for answer in found]

    together = answers(BoolSearcher(model, source()), threads=16, times=2)
    alone = answers(BoolSearcher(model, source()), threads=1, times=1)
    assert together == alone * 2
    assert len({tuple(map(tuple, answer)) for answer in alone}) > len(QUERIES)
    if kind != "index":
        store.close()
