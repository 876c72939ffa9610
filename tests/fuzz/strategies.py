"""What is fed to the readers and printers: arbitrary bytes, almost valid rows, and texts made to do harm."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "200"))
# 200 examples, always the same, with every `make test-long`; FUZZ_EXAMPLES new ones with `make fuzz`.
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)

HARMFUL = [
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</td></tr></table>", "'\"><b>", "<!--", "-->"),
    *("]]>", "{{ 7*7 }}", "{% raw %}", "${x}", "&lt;", "&#60;b&#62;", "<style>*{display:none}</style>", "</style>"),
    *("</script>", "\x1b[31m", "\x1b]0;title\x07", "\x1b[2J", "\r", "\b\b\b", "\x00", "\x9b31m", "\u202e"),
    *("\u2066", "\u2028", "\x85", "$5", "$\\frac{1}{2}$", "\\", "%s", "%n", "\ud800", "\ufeff", "a\u0300" * 20),
    *("ﷺ", "👩‍👩‍👧", "\t", "\n", "|", "`"),
    *("../..", "/etc/passwd", "-k", "--help", "not", "and", "or", "but not", "neither", "without", "非", "क्‍ष"),
]
harmful = st.sampled_from(HARMFUL)
texts = st.lists(st.one_of(harmful, st.text(max_size=8), st.sampled_from(["films", "war", "a", " "])), max_size=6).map(
    "".join
)
# Texts as readers let them through: no half surrogate pairs, not empty.
real_texts = texts.map(lambda text: text.encode("utf-8", "replace").decode()).filter(str.strip)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), texts, st.sampled_from([10**30, -1, 0, 1, "", "_ or _"])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=8
)


def mutated(contents):
    """Bytes with a few of them cut out, overwritten or doubled."""

    @st.composite
    def mutate(draw):
        content = bytearray(draw(contents))
        for _ in range(draw(st.integers(0, 4))):
            place = draw(st.integers(0, max(len(content) - 1, 0)))
            match draw(st.sampled_from(["set", "cut", "insert", "end"])):
                case "set" if content:
                    content[place] = draw(st.integers(0, 255))
                case "cut":
                    del content[place : place + draw(st.integers(1, 20))]
                case "insert":
                    content[place:place] = draw(
                        st.binary(max_size=6) | st.sampled_from([b"\n", b'"', b"{", b"\\u", b"\t"])
                    )
                case "end":
                    del content[place:]
        return bytes(content)

    return mutate()
