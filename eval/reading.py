"""How well queries are read: what they exclude, word by word, and every condition.

    python eval/reading.py                                               # data/reading, dev
    python eval/reading.py --data test --show 20                         # and 20 queries that are read wrong
    python eval/reading.py --rewrites FOLDER/queries.jsonl.gz FOLDER/llm_rewrites.jsonl.gz
    python eval/reading.py --quest FOLDER/train_full.jsonl
    python eval/reading.py --plain comlq_dev/queries.jsonl.gz boolmovies/dev.jsonl.gz
    python eval/reading.py --model my_model --show 20         # does a Bool-BERT by itself read as search does?
    python eval/reading.py --conditions                       # data/reading/conditions: every condition, kind, asks
    python eval/reading.py --second                           # how far a second labeller agrees with those

Queries are read as `boolbert search` reads them. "F1": words of what is excluded. "Exactly": queries that exclude
something and whose excluded words are found, all of them and no others. "Silent": queries that exclude nothing, read
so. "Wanted": F1 of the words that are wanted. "Alternatives": queries that offer some, which are found,
each with all of its words and no others. Of --plain queries, which exclude nothing as their data says, those are
counted that are read as if they did. Of --conditions those are counted in which the same things are excluded, each
member of a list by itself; in which every condition is the same, with its role and its group; and in which the kind of
NOT is, and whether they ask.
"""

import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boolbert.boolean.query import Query
from boolbert.boolean.tags import ALTERNATIVE, BOUND, DENIAL, DENIED_BOUND, EXCLUDED, KINDS_OF_NOT, WANTED, Mark
from boolbert.configuration_boolbert import OPERATORS
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import BoolBertError, run_script
from boolbert.data.reading import MarkedQuery, authors, marked_queries, queries_with_kinds
from boolbert.data.reading_scores import Labelled, alike, measured, own_queries, runs, words
from boolbert.retrieval.models import bool_bert, default_model, load_encoder, prompt_of
from boolbert.search.query_reader import read


@dataclass
class Arguments:
    data: str = flag("dev", "split of data/reading")
    rewrites: list[str] = flag([], "a file of queries, and one of what others have read in them")
    quest: str | None = flag(None, "QUEST's queries, of which those with NOT are read")
    plain: list[str] = flag([], "files of queries, of which those without NOT are read")
    model: str | None = flag(None, 'a Bool-BERT whose own reading is held against search\'s, or "default"')
    conditions: bool = flag(False, "every condition, the kind of NOT and whether a query asks, by sort of query")
    second: bool = flag(False, "how far a second labeller agrees with the test queries of data/reading/conditions")
    show: int = flag(0, "print this many queries that are read wrong, or otherwise by --model")


def rewritten_queries(queries: str, rewrites: str) -> list[Labelled]:
    """Queries with what somebody else has read in them; of that, the words that stand in the query."""
    excluded = {row["id"]: row["excluded"] for row in _rows(rewrites)}
    texts = {row["id"]: row["text"] for row in _rows(queries)}
    return [Labelled(texts[id], words(own) & words([texts[id]])) for id, own in excluded.items()]


def quest_queries(file: str) -> list[Labelled]:
    """QUEST's queries with NOT, as people have worded them: of the atom that is excluded, the words that stand in the
    query and in no other atom."""
    found = []
    for row in _rows(file):
        if "not" not in row["metadata"]["template"].split():
            continue
        *wanted, excluded = re.findall(r"<mark>(.*?)</mark>", row["original_query"])
        own = words([excluded]) - words(wanted)
        if own & words([row["query"]]):
            found.append(Labelled(row["query"], own & words([row["query"]]), words(wanted)))
    return found


def plain_queries(file: str) -> list[str]:
    """The queries whose kind or template, as a set has it, is without NOT."""
    return [
        row.get("text") or row["query"]
        for row in _rows(file)
        if "not" not in (row.get("kind") or row["metadata"]["template"]).split()
    ]


def _rows(file: str) -> list[dict]:
    opened = gzip.open if file.endswith(".gz") else open
    with opened(Path(file), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_if_taken(text: str) -> Query | None:
    """A query as search reads it; None where search refuses it."""
    try:
        return read(text)
    except BoolBertError:
        return None


def as_search_reads(text: str) -> tuple[list[str], list[str]]:
    """What a query excludes and wants; nothing where search refuses it."""
    if (query := read_if_taken(text)) is None:
        return [], []
    return [one.text for one in query.excluded], [one.text for group in query.groups for one in group]


def marked_as_read(text: str) -> MarkedQuery:
    """A query with the marks that search's reading comes to."""
    query = read(text)
    marks = []
    for group in query.groups:
        for one in group:
            kind = ALTERNATIVE if len(group) > 1 else BOUND if one.bound else DENIAL if one.denies else WANTED
            marks.append(Mark(kind, *one.place, one.group if len(group) > 1 else 0))
    marks += [Mark(DENIED_BOUND if one.bound else EXCLUDED, *one.place) for one in query.excluded]
    return MarkedQuery(text, marks, "search", True, query.kind, query.asks)


def as_model_reads(name: str) -> Callable[[str], tuple[list[str], str | None]]:
    """What a Bool-BERT by itself excludes from a query, and of what kind: the reading of `AutoModel` and
    `encode_query`."""
    model = default_model("cpu").encoder if name == "default" else load_encoder(name, device="cpu", quiet=True)
    bert: Any = bool_bert(model)
    if bert is None:
        raise BoolBertError(f"--model {name}: is no Bool-BERT, so it reads nothing by itself")
    prompt, not_row = prompt_of(model, "query") or "", OPERATORS.index("not")

    def read_alone(text: str) -> tuple[list[str], str | None]:
        batch = model.tokenizer([prompt + text], return_offsets_mapping=True, return_tensors="pt")
        (places,) = batch.pop("offset_mapping").tolist()
        reading = bert.read(**batch)
        (scopes,) = reading.scope.tolist()
        excluded = runs(prompt + text, places, [bool(inside) for inside in scopes[not_row]])
        return excluded, KINDS_OF_NOT[int(reading.kind)] if excluded and reading.kind is not None else None

    return read_alone


def read_otherwise(
    split: str, read_alone: Callable[[str], tuple[list[str], str | None]]
) -> tuple[list[str], list[str], int]:
    """The queries of data/reading of which other words are excluded than search excludes, those of which the same words
    are, but of another kind, and how many there are. Search-box syntax excludes a set, which no model knows."""
    queries, wrong, other_kind = marked_queries(split), list[str](), list[str]()
    for text in (query.text for query in queries):
        ours = read_if_taken(text)
        expected = words(one.text for one in (ours.excluded if ours else ()))
        kind = None if ours is None else "typed" if ours.typed else ours.kind
        excluded, own = read_alone(text)
        if words(excluded) != expected:
            wrong.append(f"{text}\n    search: {sorted(expected)}, model: {sorted(words(excluded))}")
        elif kind not in ("typed", own):
            other_kind.append(f"{text}\n    search: {kind}, model: {own}")
    return wrong, other_kind, len(queries)


def compared(pairs: Sequence[tuple[MarkedQuery, MarkedQuery]], show: int) -> list[str]:
    """Lines on how far two readings of the same queries are alike; of the kind, where the first excludes something, and
    of silence where it does not."""
    same: dict[str, list[bool]] = {}
    different = []
    for right, found in pairs:
        each = alike(right, found)
        each["silent" if right.kind is None else "kind"] = each.pop("kind")
        for name, is_same in each.items():
            same.setdefault(name, []).append(is_same)
        lines = f"    {right.text}\n        {_shown(right)}\n        {_shown(found)}"
        different += [] if all(each.values()) else [lines]
    counts = (f"{name} {sum(found)} of {len(found)} ({sum(found) / len(found):.3f})" for name, found in same.items())
    return [", ".join(counts), *different[:show]]


def _shown(query: MarkedQuery) -> str:
    marks = ", ".join(f"{mark.kind} {query.text[mark.start : mark.end]!r}" for mark in query.marks if mark.kind != "c")
    return f"{query.kind}{'?' * bool(query.asks)}: {marks}"


def agreement(show: int) -> list[str]:
    """Lines on what a second labeller, who saw no marks, says of some test queries: the ceiling of every reader."""
    first = {query.text: query for query in queries_with_kinds("test")}
    return compared([(first[query.text], query) for query in queries_with_kinds("second")], show)


def found_alternatives(split: str) -> tuple[list[str], int]:
    """The queries of data/reading whose alternatives are read otherwise than they are marked, and how many have any."""
    wrong, count = [], 0
    for query in marked_queries(split):
        marked = [query.text[mark.start : mark.end] for mark in query.marks if mark.kind == ALTERNATIVE]
        found = read(query.text) if marked else None
        if found is None or found.asks:
            continue
        count += 1
        groups = [[one.text for one in group] for group in found.groups if len(group) > 1]
        if {words([text]) for group in groups for text in group} != {words([text]) for text in marked}:
            wrong.append(f"{query.text}\n    right: {marked}, read: {groups}")
    return wrong, count


def main(given: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, given)
    if args.model:
        read_alone = as_model_reads(args.model)
        for split in ("dev", "test"):
            wrong, other_kind, count = read_otherwise(split, read_alone)
            same = f"{count - len(wrong)} of {count} read as search reads them"
            print(f"{args.model}, data/reading {split}: {same}, {len(other_kind)} of these of another kind")
            for text in (wrong + other_kind)[: args.show]:
                print(text)
        return
    if args.second:
        print("\n".join(agreement(args.show)))
        return
    if args.conditions:
        tested = queries_with_kinds("test")
        for author in authors(tested):
            pairs = [(query, marked_as_read(query.text)) for query in tested if query.author == author]
            print(f"{author}: " + "\n".join(compared(pairs, args.show)))
        return
    given_files = args.rewrites or args.quest or args.plain
    sets = {} if given_files else {f"data/reading {args.data}": own_queries(args.data)}
    if args.rewrites:
        sets[args.rewrites[0]] = rewritten_queries(*args.rewrites)
    if args.quest:
        sets[args.quest] = quest_queries(args.quest)
    for name, queries in sets.items():
        found = measured(queries, as_search_reads)
        wrong = found.pop("wrong")
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in found.items()))
        for text in wrong[: args.show]:
            print(text)
    if not given_files:
        wrong, count = found_alternatives(args.data)
        print(f"alternatives: {count - len(wrong)} of {count}")
        for text in wrong[: args.show]:
            print(text)
    for file in args.plain:
        texts = plain_queries(file)
        excluding = [text for text in texts if as_search_reads(text)[0]]
        print(f"{file}: {len(excluding)} of {len(texts)} read as if they excluded something")
        for text in excluding[: args.show]:
            print(text)


if __name__ == "__main__":
    run_script(main)
