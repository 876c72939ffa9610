"""How a query is read: what it wants, what it excludes, its alternatives.

    >>> from boolbert import read
    >>> query = read('jaguar -car OR leopard')
    >>> query.wanted, [span.text for span in query.excluded], [span.text for span in query.alternatives]
    ('jaguar OR leopard', ['car'], ['jaguar', 'leopard'])

One order, for every model and every door: what the caller says; search-box syntax, which is read as it is typed; the
query reader that comes with the package (retrieval/adapters.py), which has learned from `data/reading`; and where its
encoder is not to be had, the rules of `boolean/`.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from boolbert.boolean import Reading as RuleReading
from boolbert.boolean import (
    find_cues,
    foreign_language,
    from_multi_hot,
    has_words,
    kind_of_exclusion,
    multi_hot,
    notes_on_reading,
    read_lacking,
    read_parts,
    read_search_box,
    without_double_negation,
)
from boolbert.boolean.conditions import Conditions, blanked, read_conditions
from boolbert.boolean.kinds import is_question
from boolbert.boolean.parts import Part, after_filler
from boolbert.boolean.tags import (
    ALTERNATIVE,
    CUE,
    EXCLUDED,
    KINDS_OF_NOT,
    WANTED,
    Mark,
    joined_words,
    marks_of,
    without_false_cues,
)
from boolbert.core.errors import RetrievalError, check_text, shorten
from boolbert.retrieval.adapters import Reader, open_reader
from boolbert.retrieval.encoders import QUERY_READER

from .negations import denied_twice, read_negations, without_idioms
from .query import Query, Word, split_words, with_cues, without, words_in

# Who decides what a query says.
CALLER, SEARCH_BOX, READER, PARSER = "the caller", "the search-box syntax", "the reader", "the cue parser"
LANGUAGE = "the query's language"  # which is not English, so that nothing is read
MOST_TOKENS_READ = 256  # of a query; the reader does not see the rest
LONGEST_QUERY = 5000  # characters; the time to read a text grows with its length
MOST_WANTED, MOST_EXCLUDED = 40, 20  # conditions of a query; each is compared with every clause
SHORT_QUESTION = 12  # words of a question whose conditions are asked for one by one: "Who likes jam and tea?"
_WHICH = re.compile(r"\s*(?:which|who|whose)\b", re.IGNORECASE)
_WITH = re.compile(r"(?:with|having|containing|about)\s+(?:(?:an?|the|any)\s+)?", re.IGNORECASE)
# Words that say nothing by themselves: "those that have".
_EMPTY = r"(?:an?|the|any|those|ones|that|which|who|are|is|was|were|be|have|has|had|do|does|with)"
_NOTHING = re.compile(rf"\s*{_EMPTY}(?:\s+{_EMPTY})*\s*", re.IGNORECASE)
_EMPTY_END = re.compile(rf"(?:\b{_EMPTY}\s+)+$", re.IGNORECASE)
_QUOTED_WHOLE = re.compile(r'"[^"]+"|“[^”]+”')
_OR = re.compile(r"\b(?:or|either|alternatively)\b|\||/", re.IGNORECASE)


def read(query: str, not_kind: str | None = None) -> Query:
    """The parts of a query, each with its place in it: `query[span.start:span.end]`.

    not_kind: what NOT excludes is a "topic", a "set" or a "property"; if not given, the query's words tell.
    """
    check_query(query, not_kind)
    found = _by_itself(without_double_negation(query))
    if found.decided_by == READER:
        typed = read_search_box(direct) if (direct := denied_twice(found)) is not None else None
        found = _grouped(found) if typed is None else _by_rules(typed, READER, _conditions_typed(typed))
    _check_conditions(found.conditions)
    found = replace(found, notes=notes_on_reading(query, found.query, found.decided_by == SEARCH_BOX))
    if not found.excluded:
        return found
    kind = not_kind or _kind(found)
    return replace(found, kind=kind, conditions=found.conditions._replace(kind=kind))


def _grouped(found: Query) -> Query:
    """What is wanted, its words in larger groups than the reader's: "former colonies of Britain" is one condition, not
    three, each of which is had by many. The rules find them, in the words that the reader has marked; where there are
    alternatives, which the reader tells better, neighbours are joined. A query that was not read to its end keeps the
    reader's."""
    conditions = found.conditions
    if conditions.asks or len(conditions.wanted) < 2 or found.truncated:
        return found
    if any(len(group) > 1 for group in conditions.wanted):
        return replace(found, conditions=conditions._replace(wanted=_joined(found.query, conditions.wanted)))
    excluded = [(_before_empty(found.query, span.start), span.end) for span in found.excluded]
    holes = [*excluded, *(span.place for span in found.cues if span.operator == "not")]
    by_rules = read_conditions(found.query, excluded, holes).wanted
    marks = [(part.start, part.end) for (part,) in conditions.wanted]
    return replace(found, conditions=conditions._replace(wanted=_marked_only(found.query, by_rules, marks, holes)))


def _marked_only(
    query: str, groups: Sequence[tuple[Part, ...]], marks: Sequence[tuple[int, int]], holes: Sequence[tuple[int, int]]
) -> tuple[tuple[Part, ...], ...]:
    """The groups without the words before and behind those that the reader has marked as wanted, "kind regards" and
    "in search of"; what has no such word is no condition. holes: stretches that are no part of what is wanted.

    >>> query = "hello, a lamp not of brass for my aunt, thanks"
    >>> groups = [[_part(query, 0, 5)], [Part("", 7, 38, "a lamp for my aunt")], [_part(query, 40, 46)]]
    >>> [[part.text for part in group] for group in _marked_only(query, groups, [(9, 13), (33, 38)], [(14, 26)])]
    [['lamp for my aunt']]
    """
    left = blanked(query, holes)
    found = []
    for group in groups:
        parts = []
        for part in group:
            own = [(max(a, part.start), min(b, part.end)) for a, b in marks if a < part.end and part.start < b]
            if not own:
                continue
            start, end = own[0][0], own[-1][1]
            is_of_query = part.text.split() == left[part.start : part.end].split()  # else with words from elsewhere
            if is_of_query and (text := " ".join(left[start:end].split())):
                part = Part(part.operator, start, end, text)
            parts.append(part)
        found += [tuple(parts)] if parts else []
    return tuple(found) or tuple(map(tuple, groups))


def _before_empty(query: str, start: int) -> int:
    """Where the words begin that lead to what is excluded: of "do not have a pool" the "have"."""
    found = _EMPTY_END.search(query, 0, start)
    return found.start() if found else start


def _joined(query: str, groups: Sequence[tuple[Part, ...]]) -> tuple[tuple[Part, ...], ...]:
    """The groups; conditions between which nothing stands are one.

    >>> query = "old stone bridges in Rome or Pisa"
    >>> groups = [[_part(query, 0, 3)], [_part(query, 4, 17)], [_part(query, 18, 25), _part(query, 29, 33)]]
    >>> [[part.text for part in group] for group in _joined(query, groups)]
    [['old stone bridges'], ['in Rome', 'Pisa']]
    """
    found: list[tuple[Part, ...]] = []
    for group in groups:
        if found and len(found[-1]) == len(group) == 1 and not query[found[-1][0].end : group[0].start].strip():
            found[-1] = (_part(query, found[-1][0].start, group[0].end),)
        else:
            found.append(tuple(group))
    return tuple(found)


def _by_itself(query: str) -> Query:
    """A query as search-box syntax, the reader or the rules read it; one in another language as it is."""
    if (typed := read_search_box(query)) is not None:
        return _by_rules(typed, SEARCH_BOX, _conditions_typed(typed))
    if foreign_language(query) is not None:
        whole = as_it_is(query, LANGUAGE)
        return replace(whole, conditions=whole.conditions._replace(plain=True))
    if (reader := open_reader(QUERY_READER)) is not None:
        return by_reader(query, reader)
    text = without_idioms(query)
    return _by_rules((read_lacking(text) or read_parts(text))._replace(text=query), PARSER, read_conditions(text))


def _kind(found: Query) -> str:
    """What NOT excludes. A question for one that has something and lacks something else, "Which actors ... but never
    won an Oscar?", is answered by a passage that may well speak of it: it is a property."""
    if found.conditions.typed:
        return "set"
    kind = kind_of_exclusion(found.query, [span.place for span in found.excluded])
    is_which = found.conditions.asks and _WHICH.match(found.query) is not None
    return "property" if is_which and kind == "set" else kind


def as_it_is(query: str, decided_by: str = CALLER) -> Query:
    """A query whose words are all wanted, and nothing else is said of them."""
    whole = Conditions(((_part(query, 0, len(query)),),), asks=is_question(query))
    return Query(query, (), decided_by, whole, tuple(split_words(query)))


def read_for_caller(query: str, operators: Sequence[str], excluded: Collection[int] | None) -> Query:
    """A query of which the caller says which operators are on, or which words are excluded, by their numbers."""
    check_query(query)
    words = split_words(query)
    wrong = [number for number in excluded or () if not 0 <= number < len(words)]
    if wrong:
        raise RetrievalError(f"excluded names word {wrong[0]}, but the query has the words 0 to {len(words) - 1}")
    found = _by_itself(query)
    found = replace(found, notes=notes_on_reading(query, found.query, typed=True))
    if excluded is not None:
        words = [word._replace(cue=old.cue) for word, old in zip(words, found.words, strict=False)]
        words = [word._replace(excluded=number in excluded) for number, word in enumerate(words)]
        spans = [span.place for span in replace(found, words=tuple(words)).excluded]
        marks = [Mark(EXCLUDED, *span) for span in spans]
        marks += [mark for mark in _marks_wanted(found) if not any(s < mark.end and mark.start < e for s, e in spans)]
        names = [name for name in found.operators if name != "not"] + (["not"] if spans else [])
        conditions = _conditions(query, sorted(marks, key=lambda mark: mark.start))
        found = replace(found, operators=from_multi_hot(multi_hot(names)), conditions=conditions, words=tuple(words))
    else:
        keeps_not = "not" in operators
        words = [
            word._replace(
                excluded=word.excluded and keeps_not,
                alternative=word.alternative if "or" in operators else None,
                cue=word.cue if word.cue in operators else None,
            )
            for word in found.words
        ]
        conditions = found.conditions if keeps_not else found.conditions._replace(excluded=())
        found = replace(found, operators=tuple(operators), conditions=conditions, words=tuple(words))
    kind = _kind(found) if found.excluded else None
    return replace(found, decided_by=CALLER, kind=kind, conditions=found.conditions._replace(kind=kind or "set"))


def check_query(query: str, not_kind: str | None = None) -> None:
    """Raise for what is no text, for a query without a word, or with letters that no tokenizer takes."""
    if not_kind is not None and not_kind not in KINDS_OF_NOT:
        raise RetrievalError(f"not_kind must be one of {', '.join(KINDS_OF_NOT)}, got {not_kind!r}")
    if not isinstance(query, str):
        raise RetrievalError(f"the query must be a text, got {type(query).__name__}")
    if not query.strip():
        raise RetrievalError("the query is empty; give some words to search for")
    if len(query) > LONGEST_QUERY:
        raise RetrievalError(f"the query has {len(query):,} characters; at most {LONGEST_QUERY:,} are read: shorten it")
    if not has_words(query):
        raise RetrievalError(f"the query {shorten(query)} has no words to look for")
    check_text(query, f"the query {shorten(query)}", RetrievalError)


def _check_conditions(conditions: Conditions) -> None:
    wanted = sum(map(len, conditions.wanted))
    if len(conditions.excluded) > MOST_EXCLUDED or wanted > MOST_WANTED:
        raise RetrievalError(
            f"the query asks for {wanted} things and excludes {len(conditions.excluded)}; at most {MOST_WANTED} and "
            f"{MOST_EXCLUDED} are searched: shorten it"
        )


def by_reader(query: str, reader: Reader) -> Query:
    """A query as the reader tags it, word by word."""
    tokens = reader.tokenizer.encode(query)
    marks = read_negations(query, lambda text: _tagged(text, reader))
    is_cut = len(tokens.ids) > MOST_TOKENS_READ or sum(mark.kind == EXCLUDED for mark in marks) > MOST_EXCLUDED
    return replace(_marked(query, marks), truncated=is_cut)


def _tagged(query: str, reader: Reader) -> list[Mark]:
    """What the reader marks."""
    edges = ((0, 1), (len(query) - 1, len(query))) if _QUOTED_WHOLE.fullmatch(query) else ()
    tokens = reader.tokenizer.encode(blanked(query, edges))
    first, words = joined_words(tokens.word_ids[:MOST_TOKENS_READ], tokens.offsets[:MOST_TOKENS_READ])
    if not words:
        return []
    tags = reader.tags(tokens.ids[:MOST_TOKENS_READ])[first].tolist()
    marks = [
        mark._replace(start=_bare(query, mark.start, mark.end)) if mark.kind == EXCLUDED else mark
        for mark in without_false_cues(query, marks_of(query, words, tags))
    ]
    for kind in (EXCLUDED, WANTED):
        if any(mark.kind == kind and not _says_nothing(query, mark) for mark in marks):
            marks = [mark for mark in marks if mark.kind != kind or not _says_nothing(query, mark)]
    return marks


def _says_nothing(query: str, mark: Mark) -> bool:
    return _NOTHING.fullmatch(query, mark.start, mark.end) is not None


def _bare(query: str, start: int, end: int) -> int:
    """Where the thing itself begins in what is excluded: of "with a pool" the pool, of "about war" the war."""
    start = after_filler(query, start, end)
    found = _WITH.match(query, start, end)
    return found.end() if found and found.end() < end else start


def _marked(query: str, marks: Sequence[Mark]) -> Query:
    """A query with these marks. Cues of what is not excluded say nothing, and a question has no alternatives."""
    words = split_words(query)
    excluded = set(words_in(words, [mark[1:3] for mark in marks if mark.kind == EXCLUDED]))
    cues = set(words_in(words, [mark[1:3] for mark in marks if mark.kind == CUE])) if excluded else set()
    offered = [] if is_question(query) else [mark for mark in marks if mark.kind == ALTERNATIVE]
    number_of = {number: place for place, mark in enumerate(offered, 1) for number in words_in(words, [mark[1:3]])}
    joins = {
        number
        for before, after in pairwise(offered)
        if before.group == after.group
        for number in words_in(words, [(before.end, after.start)])
        if _OR.fullmatch(words[number].text)
    }
    roles = [
        word._replace(
            excluded=number in excluded,
            alternative=number_of.get(number),
            cue="not" if number in cues else "or" if number in joins else None,
        )
        for number, word in enumerate(words)
    ]
    ands = [cue for cue in find_cues(query) if cue.operator == "and" and not cue.weak]
    ands = [cue for cue in ands if not any(m.start < cue.end and cue.start < m.end for m in marks if m.kind != WANTED)]
    anded = with_cues(words, ands)
    roles = [role if role.role else role._replace(cue=word.cue) for role, word in zip(roles, anded, strict=True)]
    names = {name for name, on in (("not", excluded), ("or", offered), ("and", ands)) if on}
    return Query(query, from_multi_hot(multi_hot(names)), READER, _conditions(query, marks), tuple(roles))


def _conditions(query: str, marks: Sequence[Mark]) -> Conditions:
    """What the marks ask for. A long question is answered by one passage, so what it wants stays whole; so does a
    pasted text, of which more words are marked than anybody asks for."""
    found = [_part(query, mark.start, mark.end, "not") for mark in marks if mark.kind == EXCLUDED]
    excluded, asks = tuple(found[:MOST_EXCLUDED]), is_question(query)
    groups: dict[object, list[Part]] = {}
    for number, mark in enumerate(marks):
        if mark.kind in (WANTED, ALTERNATIVE):
            key = number if mark.kind == WANTED else ("or", mark.group)
            groups.setdefault(key, []).append(_part(query, mark.start, mark.end))
    is_pasted = sum(map(len, groups.values())) > MOST_WANTED
    is_long = bool(excluded) or len(query.split()) > SHORT_QUESTION or len(groups) < 2
    if (asks and is_long) or not groups or is_pasted:
        holes = [mark[1:3] for mark in marks if mark.kind == EXCLUDED or (mark.kind == CUE and excluded)]
        return Conditions(((Part("", 0, len(query), without(query, holes)),),), excluded, asks)
    return Conditions(tuple(map(tuple, groups.values())), excluded, asks)


def _marks_wanted(query: Query) -> list[Mark]:
    """The marks of what a query wants, as far as its conditions have a place in it."""
    return [
        Mark(WANTED if len(group) == 1 else ALTERNATIVE, part.start, part.end, number)
        for number, group in enumerate(query.conditions.wanted)
        for part in group
        if part.text == query.query[part.start : part.end]
    ]


def _conditions_typed(typed: RuleReading) -> Conditions:
    """What search-box syntax asks for: words and phrases as they were typed."""
    groups: list[list[Part]] = []
    for part in typed.wanted:
        if part.operator == "or" and groups:
            groups[-1].append(part)
        else:
            groups.append([part])
    whole = [[_part(typed.text, 0, len(typed.text))]]
    return Conditions(tuple(map(tuple, groups or whole)), typed.excluded, typed=bool(typed.excluded))


def _part(text: str, start: int, end: int, operator: str = "") -> Part:
    return Part(operator, start, end, text[start:end])


def _by_rules(reading: RuleReading, decided_by: str, conditions: Conditions) -> Query:
    """What the parser or the search box has read, word by word.

    >>> text = "cats or dogs without fleas"
    >>> found = _by_rules(read_parts(text), PARSER, read_conditions(text))
    >>> [span.text for span in found.excluded], [span.text for span in found.alternatives], found.operators
    (['fleas'], ['cats', 'dogs'], ('or', 'not'))
    """
    words = split_words(reading.text)
    excluded = set(words_in(words, reading.scopes("not")))
    alternatives = {
        number: place for place, span in enumerate(reading.scopes("or"), start=1) for number in words_in(words, [span])
    }
    cues = [cue for cue in reading.cues if cue.excludes or cue.operator != "not"]
    roles: list[Word] = [
        word._replace(excluded=number in excluded, alternative=alternatives.get(number))
        for number, word in enumerate(with_cues(words, cues))
    ]
    names = from_multi_hot(multi_hot({cue.operator for cue in cues}))
    return Query(reading.text, names, decided_by, conditions, tuple(roles))
