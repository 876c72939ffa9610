"""What Elasticsearch and OpenSearch answer, looked at before anything rests on it.

Each function takes an answer and gives what was asked for. It raises `BadAnswer` where the answer is not as the
documentation has it, and where it is but a part: a server answers 200, too, where a shard is missing, has failed or
takes too long.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from boolbert.core.errors import shorten


class BadAnswer(Exception):
    """An answer that cannot be used. The message goes on after the name of the server."""


class Kind(NamedTuple):
    """What a value has to be. name: as it is told where it is something else."""

    name: str
    fits: Callable[[Any], bool]


TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
YES = Kind("true", lambda value: value is True)
COUNT = Kind("a number of 0 or more", lambda value: type(value) is int and value >= 0)
MEASURE = Kind(
    "a number or null", lambda value: value is None or (type(value) in (int, float) and math.isfinite(value))
)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
LIST = Kind("a list", lambda value: isinstance(value, list))

_SHARDS = {"total": COUNT, "successful": COUNT, "failed": COUNT}
_HITS = {"_shards": _SHARDS, "timed_out": FLAG, "hits": {"hits": [{"_id": TEXT}]}}


def read_json(content: bytes) -> Any:
    """
    >>> read_json(b'{"count": 3}')
    {'count': 3}
    """
    try:
        return json.loads(content.decode(), parse_constant=_refused)
    except (ValueError, RecursionError):  # bytes that are no UTF-8 are a ValueError as well
        raise BadAnswer(f"answers {shorten(content[:60])}, which is no JSON") from None


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def check(answer: Any, shape: Any, place: str = "") -> None:
    """Raise where an answer has not this shape: a kind, a list of one shape, or an object with at least these keys."""
    kind = OBJECT if isinstance(shape, dict) else LIST if isinstance(shape, list) else shape
    if not kind.fits(answer):
        raise _misfit(answer, place, f"has to be {kind.name}")
    if isinstance(shape, dict):
        for key, inner in shape.items():
            if key not in answer:
                raise _misfit(answer, place, f"has no {key}")
            check(answer[key], inner, f"{place}.{key}")
    elif isinstance(shape, list):
        for number, one in enumerate(answer):
            check(one, shape[0], f"{place}.{number}")


def _misfit(answer: Any, place: str, why: str) -> BadAnswer:
    try:
        shown = shorten(answer)
    except RecursionError:
        shown = "something deeply nested"
    return BadAnswer(f"answers {shown}{f' for {place[1:]}' if place else ''}, which {why}")


def mapping(answer: Any) -> Mapping[str, Any]:
    """The mapping of an index. An alias of several indexes has none: it is none of ours."""
    check(answer, OBJECT)
    if not answer:
        raise _misfit(answer, "", "has to name an index")
    for name, one in answer.items():
        check(one, {"mappings": OBJECT}, f".{name}")
    (first, *others) = answer.values()
    return {} if others else first["mappings"]


def inside(known: Any, *keys: str) -> Any:
    """What stands below these keys; None where nothing does.

    >>> inside({"_meta": {"a": 1}}, "_meta", "a"), inside({"_meta": None}, "_meta", "a")
    (1, None)
    """
    for key in keys:
        known = known.get(key) if isinstance(known, dict) else None
    return known


def acknowledged(answer: Any) -> bool:
    check(answer, {"acknowledged": YES})
    return True


def refreshed(answer: Any) -> None:
    """Copies that no server has are neither successful nor failed, and nothing is searched in them."""
    check(answer, {"_shards": _SHARDS})
    if answer["_shards"]["failed"]:
        raise _part(_failure(answer["_shards"]))


def count(answer: Any) -> int:
    check(answer, {"count": COUNT, "_shards": _SHARDS})
    _check_whole(answer)
    return int(answer["count"])


def hits(answer: Any, body: Mapping[str, Any]) -> list[Any]:
    """The hits of a search with this body."""
    wanted: dict[str, Any] = {"_id": TEXT}
    if body.get("_source", True):
        wanted["_source"] = OBJECT
    if "sort" in body:
        wanted["sort"] = LIST
    check(answer, {**_HITS, "hits": {"hits": [wanted]}})
    _check_whole(answer)
    found: list[Any] = answer["hits"]["hits"]
    if "search_after" in body:  # a total counts the pages before, too
        _check_goes_on(found, body["search_after"])
    else:
        check(answer, {"hits": {"total": {"value": COUNT, "relation": TEXT}}})
        expected = min(body.get("size", 10), answer["hits"]["total"]["value"])
        if len(found) < expected:
            raise _part(f"{len(found):,} of {expected:,} hits")
    return found


def _check_goes_on(found: Sequence[Any], after: Sequence[Any]) -> None:
    """Raise where a page does not stand behind the last one: it would never end."""
    before = after
    for one in found:
        try:
            goes_on = len(one["sort"]) == len(after) and one["sort"] > before
        except TypeError:
            goes_on = False
        if not goes_on:
            raise BadAnswer(f"answers {shorten(one['sort'])} as what comes after {shorten(before)}")
        before = one["sort"]


def responses(answer: Any, bodies: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Of several searches that were sent together, the hits of each, or its error."""
    check(answer, {"responses": [OBJECT]})
    _check_count(answer["responses"], len(bodies), "searches")
    return [one if "error" in one else hits(one, body) for one, body in zip(answer["responses"], bodies, strict=True)]


def totals(answer: Any) -> tuple[int, Mapping[str, Any]]:
    """How many documents a search has found, all of which are counted, and its aggregations."""
    check(answer, {**_HITS, "aggregations": OBJECT})
    check(answer, {"hits": {"total": {"value": COUNT, "relation": TEXT}}})
    _check_whole(answer)
    total = answer["hits"]["total"]
    if total["relation"] != "eq":
        raise _part(f"there are at least {total['value']:,} documents")
    return total["value"], answer["aggregations"]


def measure(aggregations: Mapping[str, Any], name: str) -> float:
    """The value of an aggregation; 0 where there are no documents."""
    check(aggregations, {name: {"value": MEASURE}}, ".aggregations")
    return float(aggregations[name]["value"] or 0.0)


def buckets(answer: Any, name: str, keys: Sequence[str]) -> list[int]:
    """How many documents each bucket of an aggregation holds."""
    shape = {name: {"buckets": {key: {"doc_count": COUNT} for key in keys}}}
    check(answer, {**_HITS, "aggregations": shape})
    _check_whole(answer)
    return [answer["aggregations"][name]["buckets"][key]["doc_count"] for key in keys]


def fetched(answer: Any, ids: Sequence[str]) -> list[Any]:
    """The documents of `_mget` that are there, and an error for each that could not be looked for."""
    check(answer, {"docs": [{"_id": TEXT}]})
    _check_ids(answer["docs"], ids)
    found = []
    for number, one in enumerate(answer["docs"]):
        if "error" not in one:
            check(one, {"found": FLAG}, f".docs.{number}")
            if not one["found"]:
                continue
            check(one, {"_source": OBJECT}, f".docs.{number}")
        found.append(one)
    return found


def written(answer: Any, ids: Sequence[str]) -> list[Any]:
    """What `_bulk` has made of each document: written, deleted, not there any more to be deleted, or an error."""
    check(answer, {"errors": FLAG, "items": [OBJECT]})
    results = []
    for number, item in enumerate(answer["items"]):
        for action, one in item.items():
            check(one, {"_id": TEXT, "status": COUNT}, f".items.{number}.{action}")
            results.append(one)
    _check_ids(results, ids)
    for one in results:
        if "error" not in one and one["status"] >= 300 and one.get("result") != "not_found":
            raise BadAnswer(f"answers status {one['status']} for the document {shorten(one['_id'])}, and no error")
    return results


def _check_ids(found: Sequence[Any], ids: Sequence[str]) -> None:
    """Raise where not every document that was sent has its answer, in its order."""
    _check_count(found, len(ids), "documents")
    for one, id in zip(found, ids, strict=True):
        if one["_id"] != id:
            raise BadAnswer(f"answers the document {shorten(one['_id'])} where {shorten(id)} was asked for")


def _check_count(found: Sequence[Any], expected: int, what: str) -> None:
    if len(found) != expected:
        raise BadAnswer(f"answers for {len(found):,} of {expected:,} {what}")


def _check_whole(answer: Mapping[str, Any]) -> None:
    """Raise where a search has not looked at all documents. Shards that no server has are neither successful nor
    failed."""
    shards = answer["_shards"]
    if shards["failed"] or not 0 < shards["total"] <= shards["successful"]:
        raise _part(_failure(shards))
    if answer.get("timed_out"):
        raise _part("it has timed out")
    if answer.get("terminated_early"):
        raise _part("it ended early")
    others = answer.get("_clusters") or {}
    check(others, OBJECT, "._clusters")
    missing = [others.get(name) or 0 for name in ("skipped", "partial", "failed", "running")]
    if any(missing):
        raise _part(f"{sum(number for number in missing if type(number) is int)} cluster without an answer")


def _failure(shards: Mapping[str, Any]) -> str:
    failures = shards.get("failures")
    first = failures[0] if isinstance(failures, list) and failures else None
    reason = inside(first, "reason", "reason")
    return f"{shards['successful']} of {shards['total']} shards{f': {shorten(reason)}' if reason else ''}"


def _part(why: str) -> BadAnswer:
    return BadAnswer(f"has looked at a part only ({why}); try again when all its shards can be reached")
