"""The wordings of each Boolean meaning.

A meaning is named by its formula. In a frame `{A}` is an atom as a noun phrase ("French films"), `{a}` what stands
after "are" ("French"), `{h}` the head ("films"); in a topic frame `{x}` is a topic and `{r}` the relation ("about").
Every frame of a meaning holds cues of exactly the operators that `OPERATORS_OF` names.
"""

OPERATORS_OF: dict[str, tuple[str, ...]] = {
    "a": (),
    "not a": ("not",),
    "a and b": ("and",),
    "a or b": ("or",),
    "a not b": ("not",),
    "neither": ("not",),
    "a and b and c": ("and",),
    "a or b or c": ("or",),
    "a and (b or c)": ("and", "or"),
    "(a or b) not c": ("or", "not"),
    "a and b not c": ("and", "not"),
    "none": ("not",),
}

_LEAVE_OUT = (
    *("excluding", "except", "other than", "apart from", "aside from", "with the exception of", "leaving out"),
    *("but not", "not including", "save for", "except for", "minus", "barring"),
)

FRAMES: dict[str, tuple[str, ...]] = {
    "a": ("{A}", "{h} that are {a}", "only {A}", "all {A}", "nothing but {A}", "just {A}"),
    "not a": (
        *("{h} that are not {a}", "{h} that aren't {a}", "{h} which are not {a}", "{h} that are never {a}"),
        *(f"{{h}} {cue} {{A}}" for cue in ("excluding", "other than", "apart from", "aside from")),
        *(f"all {{h}} {cue} {{A}}" for cue in ("but not", "except", "except for", "leaving out", "besides")),
    ),
    "a and b": (
        *("{A} that are also {b}", "{A} which are also {b}", "{A} that are {b} as well", "{h} that are {a} and {b}"),
        *("{h} that are both {a} and {b}", "{h} that are {a} as well as {b}", "{h} that are {a} and also {b}"),
        *(
            "{h} that are not only {a} but also {b}",
            "{A} that are at the same time {b}",
            "{A} that are additionally {b}",
        ),
        *("{h} that are simultaneously {a} and {b}", "{h} that are {b} in addition to being {a}"),
        *(
            "{h} that are {a} along with being {b}",
            "{h} that are {a} while also being {b}",
            "{A} that are likewise {b}",
        ),
    ),
    "a or b": (
        *("{h} that are {a} or {b}", "{h} that are either {a} or {b}", "either {A} or {B}", "{A} or {B}"),
        *("{A} or else {B}", "{A}, or alternatively {B}", "{h} that are {a} and/or {b}", "{A} and/or {B}"),
        *("any of the following: {A}, {B}", "{h} that are at least one of these: {a}, {b}"),
    ),
    "a not b": (
        *("{A} that are not {b}", "{A} that aren't {b}", "{A} which are not {b}", "{A} that are never {b}"),
        *("{h} that are {a} but not {b}", "{h} that are {a} and not {b}", "{h} that are {a} rather than {b}"),
        *("{h} that are {a} though not {b}", "{h} that are {a} without being {b}"),
        *(f"{{A}} {cue} {{B}}" for cue in _LEAVE_OUT),
    ),
    "neither": (
        *("{h} that are neither {a} nor {b}", "{h} that are not {a}, nor {b}", "{h} that aren't {a}, nor {b}"),
        *("neither {A} nor {B}", "{h} that are never {a}, nor {b}"),
    ),
    "a and b and c": (
        *("{A} that are also both {b} and {c}", "{A} that are also {b} and {c}", "{h} that are {a}, {b} and {c}"),
        *("{h} that are {a} and {b} as well as {c}", "{A} that are {b} in addition to being {c}"),
        *("{A} that are at the same time {b} and {c}", "{A} that are not only {b} but also {c}"),
    ),
    "a or b or c": (
        *("{A} or {B} or {C}", "{A}, {B} or {C}", "either {A}, {B} or {C}", "{A}, {B}, or else {C}"),
        *("{h} that are {a}, {b} or {c}", "{h} that are {a} or {b} or {c}", "any of these: {A}, {B}, {C}"),
        *("{A}, {B} and/or {C}", "{A} or {B}, or alternatively {C}"),
    ),
    "a and (b or c)": (
        *("{A} that are also {b} or {c}", "{A} that are also either {b} or {c}", "{A} which are also {b} or else {c}"),
        *("{A} that are also {b} and/or {c}", "{A} that are additionally {b} or {c}"),
    ),
    "(a or b) not c": (
        *("{A} or {B} but not {C}", "{h} that are {a} or {b} but not {c}", "either {A} or {B}, except {C}"),
        *("{A} or {B}, excluding {C}", "{h} that are either {a} or {b} and not {c}"),
    ),
    "a and b not c": (
        *("{A} that are also {b} but not {c}", "{h} that are both {a} and {b} but not {c}"),
        *("{A} that are {b} as well, but aren't {c}", "{h} that are {a} as well as {b}, though not {c}"),
        *("{A} that are at the same time {b} but never {c}", "{h} that are not only {a} but also {b}, and not {c}"),
        *(f"{{A}} that are also {{b}}, {cue} {{C}}" for cue in _LEAVE_OUT[:7]),
    ),
    "none": ("{h} that are neither {a} nor {b} nor {c}", "{h} that are not {a}, not {b}, nor {c}"),
}

TOPIC_FRAMES: dict[str, tuple[str, ...]] = {
    "a and b": (
        *("{h} {r} {x} and {y}", "{h} {r} both {x} and {y}", "{h} {r} {x} as well as {y}", "{h} {r} {x} & {y}"),
        *("{h} {r} {x} along with {y}", "{h} {r} {x} together with {y}", "{h} {r} {x} in addition to {y}"),
        *("{h} {r} {x} plus {y}", "{h} {r} {x} and also {y}", "{h} {r} {x} combined with {y}"),
        *("{h} {r} {g} including {x} and {y}", "{h} {r} not only {x} but also {y}", "{h} {r} {x} alongside {y}"),
    ),
    "a or b": (
        *("{h} {r} {x} or {y}", "{h} {r} either {x} or {y}", "{h} {r} {x} and/or {y}", "{h} {r} {x} or else {y}"),
        *("{h} {r} {x}, or alternatively {y}", "{h} {r} {x} or {h} {r} {y}", "{h} {r} any of these: {x}, {y}"),
        "{h} {r} at least one of these: {x}, {y}",
    ),
    "a not b": (
        *("{h} {r} {x} but not {y}", "{h} {r} {x} and not {y}", "{h} {r} {x}, never {y}"),
        *("{h} {r} {x} rather than {y}", "{h} {r} {x} though not {y}"),
        *(f"{{h}} {{r}} {{x}} {cue} those {{r}} {{y}}" for cue in _LEAVE_OUT),
    ),
    "neither": ("{h} {r} neither {x} nor {y}", "{h} {r} none of these: {x}, {y}"),
}
# "Films that are not about chess", but dishes that "are with leeks" there are none.
BEING_FRAMES: dict[str, tuple[str, ...]] = {
    "a and b": ("{h} {r} {x} that are also {r} {y}", "{h} that are {r} both {x} and {y}"),
    "a or b": ("{h} that are {r} {x} or {y}", "{h} that are either {r} {x} or {r} {y}"),
    "a not b": (
        *("{h} {r} {x} that are not {r} {y}", "{h} {r} {x} that aren't {r} {y}", "{h} {r} {x} but never {r} {y}"),
        "{h} that are not {r} {y} but {r} {x}",
    ),
    "neither": ("{h} that are not {r} {x}, nor {r} {y}", "{h} that aren't {r} {x}, nor {r} {y}"),
}
WITH_FRAMES: dict[str, tuple[str, ...]] = {
    "a and b": ("{h} with {x} that also have {y}", "{h} that have both {x} and {y}"),
    "a or b": ("{h} that have {x} or {y}", "{h} that have either {x} or {y}"),
    "a not b": (
        *("{h} with {x} but without {y}", "{h} with {x} and no {y}", "{h} with {x} that lack {y}"),
        *("{h} with {x} that don't have {y}", "{h} with {x} lacking {y}", "{h} with {x} and without {y}"),
        *("{h} with {x} that exclude {y}", "{h} without {y} that have {x}"),
    ),
    "neither": ("{h} without {x}, nor {y}", "{h} that have neither {x} nor {y}", "{h} with no {x}, nor {y}"),
}

# What stands round the wording: a query, a request, a question, a statement.
WRAPPERS: tuple[str, ...] = (
    *("{core}", "{core}", "{core}", "find {core}", "list {core}", "show me {core}", "what are some {core}?"),
    *("I am looking for {core}.", "can you recommend {core}?", "we need {core}.", "do you know {core}?"),
    *("they asked for {core}.", "the guide covers {core}.", "this page lists {core}.", "my sister prefers {core}."),
)
# Wordings that begin with these words do not follow "some".
CLOSED: tuple[str, ...] = ("all ", "any ", "either ", "neither ", "only ", "just ", "nothing ")
# For a wording with one "that are", turned into a clause of its own.
CLAUSES: tuple[str, ...] = ("which {core}?", "these {core}.", "the {core}.")
