"""What the page's address asks for, such as /?q=films, not war&k=20: reload, Back and a shared link show the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from boolbert.core.errors import BoolBertError

RESULTS = 10
NONE = "none"  # no word is excluded, by hand


@dataclass(frozen=True)
class Asked:
    """A query, how many results, and what was set by hand: a strength from 0 to 100, the numbers of the words that are
    excluded, and the share of the results that may have what is excluded.

    Values that are no numbers stay texts; the engine refuses them.
    """

    query: str = ""
    k: Any = RESULTS
    strength: Any = None
    excluded: Any = None
    violations: Any = None

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "Asked":
        """
        >>> Asked.of({"q": "films, not war", "excluded": "2,3", "strength": "60"})
        Asked(query='films, not war', k=10, strength=60.0, excluded=[2, 3], violations=None)
        """
        k, strength, words, violations = (values.get(name) for name in ("k", "strength", "excluded", "violations"))
        return cls(
            values.get("q", ""),
            _number(k, int) if k else RESULTS,
            _number(strength) if strength else None,
            _numbers(words) if words else None,
            _number(violations) if violations else None,
        )

    def limits(self) -> dict[str, Any]:
        """What the engine takes beside the query."""
        strength = self.strength
        if isinstance(strength, float):
            if not 0 <= strength <= 100:
                raise BoolBertError(f"how strongly to exclude goes from 0 to 100, got {strength:g}")
            strength /= 100
        return {"k": self.k, "strength": strength, "excluded": self.excluded, "violations": self.violations}

    def link(self, **changes: Any) -> str:
        """The address of the page with other values.

        >>> Asked("films", excluded=[]).link(k=20), Asked("a & b", k=20).link(k=RESULTS)
        ('?q=films&k=20&excluded=none', '?q=a+%26+b')
        """
        asked = replace(self, **changes)
        words = asked.excluded
        values = {
            "q": asked.query,
            "k": "" if asked.k == RESULTS else asked.k,
            "strength": "" if asked.strength is None else f"{asked.strength:g}",
            "excluded": "" if words is None else ",".join(map(str, words)) or NONE,
            "violations": asked.violations or "",
        }
        return f"?{urlencode({name: value for name, value in values.items() if value != ''})}"


def _number(text: str, kind: type = float) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text


def _numbers(text: str) -> Any:
    found = [] if text == NONE else [_number(part, int) for part in text.split(",")]
    return found if all(isinstance(one, int) for one in found) else text
