"""How well queries are read: what they exclude, word by word.

    python eval/reading.py                                               # data/reading, dev
    python eval/reading.py --data test --show 20                         # and 20 queries that are read wrong
    python eval/reading.py --rewrites FOLDER/queries.jsonl.gz FOLDER/llm_rewrites.jsonl.gz
    python eval/reading.py --quest FOLDER/train_full.jsonl
    python eval/reading.py --plain comlq_dev/queries.jsonl.gz boolmovies/dev.jsonl.gz
    python eval/reading.py --model my_model --show 20         # does a Bool-BERT by itself read as search does?
    python eval/reading.py --kinds                            # what NOT excludes, in data/reading/conditions
    python eval/reading.py --second                           # how far a second labeller agrees with those

Queries are read as `boolbert search` reads them. "F1": words of what is excluded. "Exactly": queries that exclude
something and whose excluded words are found, all of them and no others. "Silent": queries that exclude nothing, read
so. "Wanted": F1 of the words that are wanted. "Alternatives": queries that offer some, which are found,
each with all of its words and no others. Of --plain queries, which exclude nothing as their data says, those are
counted that are read as if they did.
"""

import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boolbert.boolean.kinds import is_question
from boolbert.boolean.tags import ALTERNATIVE, KINDS_OF_NOT, WANTED
from boolbert.configuration_boolbert import OPERATORS
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import BoolBertError, run_script
from boolbert.data.reading import MarkedQuery, marked_queries, queries_with_kinds
from boolbert.data.reading_scores import Counts, Labelled, measured, own_queries, runs, words
from boolbert.retrieval.adapters import open_reader
from boolbert.retrieval.encoders import QUERY_READER
from boolbert.retrieval.models import bool_bert, default_model, load_encoder, prompt_of
from boolbert.search.query_reader import read


@dataclass
class Arguments:
    data: str = flag("dev", "split of data/reading")
    rewrites: list[str] = flag([], "a file of queries, and one of what others have read in them")
    quest: str | None = flag(None, "QUEST's queries, of which those with NOT are read")
    plain: list[str] = flag([], "files of queries, of which those without NOT are read")
    model: str | None = flag(None, 'a Bool-BERT whose own reading is held against search\'s, or "default"')
    kinds: bool = flag(False, "how often the kind of NOT is told right, by a Bool-BERT and by search")
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


def as_search_reads(text: str) -> tuple[list[str], list[str]]:
    """What a query excludes and wants; nothing where search refuses it."""
    try:
        query = read(text)
    except BoolBertError:
        return [], []
    return [span.text for span in query.excluded], [one.text for group in query.conditions.wanted for one in group]


def as_model_reads(name: str) -> Callable[[str], list[str]]:
    """What a Bool-BERT by itself excludes from a query: the reading of `AutoModel` and `encode_query`."""
    model = default_model("cpu").encoder if name == "default" else load_encoder(name, device="cpu", quiet=True)
    bert: Any = bool_bert(model)
    if bert is None:
        raise BoolBertError(f"--model {name}: is no Bool-BERT, so it reads nothing by itself")
    prompt, not_row = prompt_of(model, "query") or "", OPERATORS.index("not")

    def read_alone(text: str) -> list[str]:
        batch = model.tokenizer([prompt + text], return_offsets_mapping=True, return_tensors="pt")
        (places,) = batch.pop("offset_mapping").tolist()
        (scopes,) = bert.read(**batch).scope.tolist()
        return runs(prompt + text, places, [bool(inside) for inside in scopes[not_row]])

    return read_alone


def read_otherwise(split: str, read_alone: Callable[[str], list[str]]) -> tuple[list[str], int]:
    """The queries of data/reading of which other words are excluded than search excludes, and how many there are."""
    queries = marked_queries(split)
    each = ((query.text, words(as_search_reads(query.text)[0]), words(read_alone(query.text))) for query in queries)
    wrong = [f"{text}\n    search: {sorted(ours)}, model: {sorted(own)}" for text, ours, own in each if ours != own]
    return wrong, len(queries)


def kinds_told(show: int) -> list[str]:
    """Lines on how often the kind of NOT is told right in the queries of authors whom nobody learned from."""
    queries = [query for query in queries_with_kinds("test") if query.kind is not None]
    reader = open_reader(QUERY_READER)
    if reader is None:
        raise BoolBertError("--kinds: the encoder that the reader was learned for is not on this machine")
    told: dict[str, list[str | None]] = {
        "a Bool-BERT's reader": [reader.kind(reader.tokenizer.encode(query.text).ids) for query in queries],
        "search, by rules": [read(query.text).kind for query in queries],
    }
    lines = []
    for name, kinds in told.items():
        right = [kind == query.kind for kind, query in zip(kinds, queries, strict=True)]
        each = []
        for kind in KINDS_OF_NOT:
            own = [one for one, query in zip(right, queries, strict=True) if query.kind == kind]
            each.append(f"{kind} {sum(own)} of {len(own)}")
        lines.append(f"{name}: {sum(right)} of {len(right)} ({', '.join(each)})")
        wrong = [(query, kind) for query, kind in zip(queries, kinds, strict=True) if kind != query.kind]
        lines += [f"    {query.text}: {query.kind}, told {kind}" for query, kind in wrong[:show]]
    return lines


def agreement(show: int) -> list[str]:
    """Lines on what a second labeller, who saw no marks, says of some test queries: the ceiling of every reader."""
    first = {query.text: query for query in queries_with_kinds("test")}
    pairs = [(first[query.text], query) for query in queries_with_kinds("second")]
    same: dict[str, list[bool]] = {}
    count = Counts()
    different = []
    for one, other in pairs:
        excluded, theirs = (words(_marked(query, "xy")) for query in (one, other))
        count.add(theirs, excluded)
        each = {
            "words of what is excluded": excluded == theirs,
            "kind": one.kind == other.kind,
            "asks": one.asks == other.asks,
            "every condition": _conditions(one) == _conditions(other),
        }
        for name, is_same in each.items():
            same.setdefault(name, []).append(is_same)
        different += [] if all(each.values()) else [f"    {one.text}: {_conditions(one)}, {_conditions(other)}"]
    counts = ", ".join(f"{name} {sum(found)}" for name, found in same.items())
    return [f"of {len(pairs)} alike: {counts}; F1 {count.f1:.3f}", *different[:show]]


def _marked(query: MarkedQuery, kinds: str) -> list[str]:
    return [query.text[mark.start : mark.end] for mark in query.marks if mark.kind in kinds]


def _conditions(query: MarkedQuery) -> list[tuple[str, list[str]]]:
    """Every condition: whether it is wanted, excluded, bounded or denied, and its words."""
    named = {"wanted": WANTED + ALTERNATIVE, "excluded": "xy", "bound": "m", "denied": "n"}
    return sorted((name, sorted(words([text]))) for name, kinds in named.items() for text in _marked(query, kinds))


def found_alternatives(split: str) -> tuple[list[str], int]:
    """The queries of data/reading whose alternatives are read otherwise than they are marked, and how many have any."""
    wrong, count = [], 0
    for query in marked_queries(split):
        marked = [query.text[mark.start : mark.end] for mark in query.marks if mark.kind == ALTERNATIVE]
        if not marked or is_question(query.text):
            continue
        count += 1
        groups = [[part.text for part in group] for group in read(query.text).conditions.wanted if len(group) > 1]
        if {words([text]) for group in groups for text in group} != {words([text]) for text in marked}:
            wrong.append(f"{query.text}\n    right: {marked}, read: {groups}")
    return wrong, count


def main(given: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, given)
    if args.model:
        read_alone = as_model_reads(args.model)
        for split in ("dev", "test"):
            wrong, count = read_otherwise(split, read_alone)
            print(f"{args.model}, data/reading {split}: {count - len(wrong)} of {count} read as search reads them")
            for text in wrong[: args.show]:
                print(text)
        return
    if args.second:
        print("\n".join(agreement(args.show)))
        return
    if args.kinds:
        print("\n".join(kinds_told(args.show)))
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
