"""Atoms and a template become an English query, in one of many wordings with cues of all kinds."""

from collections.abc import Sequence
from random import Random

from ...boolean import operators_of, template_operators
from .atoms import Atom
from .grammar import join, shared

_HEADS = ("countries", "states", "nations")
_LEADS = ("countries that", "countries that", "countries which", "states that", "which countries", "which states")
_ALSO = ("that are also", "that are also", "which are also", "that are at the same time", "that are simultaneously")
_NOT = (
    *("that are not", "that are not", "that aren't", "which are not", "but not", "but not", "excluding", "other than"),
    *("except", "except for", "apart from", "with the exception of", "aside from"),
)
# A noun with one of these has its own complement already: "countries using the euro in Asia" would mislead.
_COMPLEMENTS = frozenset(
    {"in", "on", "with", "using", "by", "bordering", "sharing", "where", "whose", "along", "than", "since", "driving"}
)
_NON = frozenset({"continent", "region", "landlocked", "government", "mountains"})  # "non-African countries"
_ATTEMPTS = 60


def phrase(template: str, atoms: Sequence[Atom], rng: Random, implicit: bool = False) -> str:
    """A query for these atoms; `implicit` asks for a wording that leaves AND unsaid ("landlocked African countries").

    The text says no operator that the template lacks and, unless it is implicit, every one that it has.
    """
    wanted = set(template_operators(template))
    for _ in range(_ATTEMPTS):
        query = _draft(template, atoms, rng, implicit)
        found = set(operators_of(query)) if query else None
        if found is not None and found <= wanted and (found == wanted or (implicit and wanted - found == {"and"})):
            return query
    if implicit:
        return phrase(template, atoms, rng)
    raise ValueError(f"no wording of {template!r} with {[atom.key for atom in atoms]} says its operators")


def _draft(template: str, atoms: Sequence[Atom], rng: Random, implicit: bool) -> str:
    match template:
        case "_":
            return _single(atoms[0], rng)
        case "_ or _" | "_ or _ or _":
            return _either(atoms, rng)
        case "_ that are also _":
            return _merged(atoms[0], atoms[1], rng) if implicit else _both(atoms[0], atoms[1:], rng)
        case "_ that are also both _ and _":
            if implicit:
                base = _merged(atoms[0], atoms[1], rng, clause=False)
                return f"{base} that {rng.choice(atoms[2].predicates)}" if base else ""
            return _both(atoms[0], atoms[1:], rng)
        case "_ that are not _":
            return _without(atoms[0], atoms[1], rng)
        case _:
            return _both_but_not(atoms, rng, implicit)


def _asked(predicate: str, rng: Random) -> str:
    """A predicate behind "countries that" or as a question."""
    lead = rng.choice(_LEADS)
    return f"{lead} {predicate}{'?' if lead.startswith('which') else ''}"


def _is_copula(predicate: str) -> bool:
    return predicate.startswith(("are ", "were "))


def _single(atom: Atom, rng: Random) -> str:
    noun = rng.choice(atom.nouns)
    return rng.choice((noun, noun, f"list of {noun}", f"all {noun}", _asked(rng.choice(atom.predicates), rng)))


def _second(before: str, atom: Atom, rng: Random) -> str:
    """A noun for a later slot that does not repeat the "countries" of those before; "" where there is none."""
    heads = {word for word in _HEADS if word in before.split()}
    nouns = [noun for noun in atom.nouns if not heads & set(noun.split())]
    return rng.choice(nouns) if nouns else ""


def _alike(atoms: Sequence[Atom]) -> tuple[str, list[str], str] | None:
    """The common frame of atoms of one family: "border ...", "have ... as an official language"."""
    return shared([atom.predicates[0] for atom in atoms]) if len({atom.family for atom in atoms}) == 1 else None


def _either(atoms: Sequence[Atom], rng: Random) -> str:
    frame = _alike(atoms)
    if frame and rng.random() < 0.5:
        start, middles, end = frame
        return _asked(f"{start} {rng.choice(('', 'either '))}{join(middles, 'or')} {end}".strip(), rng)
    nouns = [rng.choice(atom.nouns) for atom in atoms]
    predicates = [rng.choice(atom.predicates) for atom in atoms]
    return rng.choice(
        (
            join(nouns, "or"),
            " or ".join(nouns),
            f"either {join(nouns, 'or')}",
            f"{', '.join(nouns[:-1])}, or else {nouns[-1]}",
            f"{', '.join(nouns[:-1])}, or alternatively {nouns[-1]}",
            f"any of these: {join(nouns, 'or')}",
            _asked(join(predicates, "or"), rng),
            _asked(f"either {join(predicates, 'or')}", rng),
        )
    )


def _both(first: Atom, others: Sequence[Atom], rng: Random) -> str:
    """A that are also B, or B and C."""
    noun = rng.choice(first.nouns)
    seconds = [_second(noun, others[0], rng)]
    seconds += [_second(f"{noun} {seconds[0]}", atom, rng) for atom in others[1:]]
    predicates = [rng.choice(atom.predicates) for atom in others]
    own = rng.choice(first.predicates)
    options = [
        f"{noun} that also {join(predicates)}" if not any(map(_is_copula, predicates)) else "",
        _asked(f"{join([own, *predicates])}", rng),
        _asked(f"both {own} and {predicates[0]}", rng) if len(others) == 1 and not _is_copula(own) else "",
        _asked(f"not only {own} but also {predicates[0]}", rng) if len(others) == 1 else "",
        f"{noun} that both {join(predicates)}" if len(others) == 2 and not _is_copula(predicates[0]) else "",
        f"{noun} that {predicates[0]} and also {predicates[1]}" if len(others) == 2 else "",
        f"{noun} that {predicates[0]} and at the same time {predicates[1]}" if len(others) == 2 else "",
    ]
    if all(seconds):
        also = rng.choice(_ALSO)
        nouns = seconds[0] if len(others) == 1 else rng.choice((f"both {join(seconds)}", join(seconds)))
        options += [
            f"{noun} {also} {nouns}",
            f"{noun} that are {seconds[0]} as well" if len(others) == 1 else "",
            f"{noun} that are {seconds[0]} as well as {seconds[1]}" if len(others) == 2 else "",
            f"{noun} {also} {nouns}",
        ]
    frame = _alike(others)
    if frame and len(others) == 2:
        options += [f"{noun} that {frame[0]} both {join(frame[1])} {frame[2]}".strip()] * 2
    frame = _alike([first, *others])
    if frame and len(others) == 1:
        options += [_asked(f"{frame[0]} both {join(frame[1])} {frame[2]}".strip(), rng)] * 3
    return rng.choice([option for option in options if option])


def _merged(first: Atom, second: Atom, rng: Random, clause: bool = True) -> str:
    """Both in one noun phrase: "African monarchies", "monarchies in Africa"; "" where they do not go together."""
    options = []
    for one, other in ((first, second), (second, first)):
        noun = rng.choice(one.nouns)
        if other.after and not _COMPLEMENTS & set(noun.split()):
            options.append(f"{noun} {other.after}")
        if other.adjective and not (one.adjective and noun.startswith(one.adjective)):
            options.append(f"{other.adjective} {noun}")
        if one.family == "landlocked" and other.adjective:
            options.append(f"{one.adjective} {other.adjective} countries")
        if clause:
            options.append(f"{noun} that {rng.choice(other.predicates)}")
    return rng.choice(options) if options else ""


def _without(first: Atom, second: Atom, rng: Random) -> str:
    noun = rng.choice(first.nouns)
    other = _second(noun, second, rng)
    no, yes = rng.choice(second.negations), rng.choice(second.predicates)
    options = [
        f"{noun} that {no}",
        f"{noun} that {no}",
        _asked(f"{rng.choice(first.predicates)} but {no}", rng),
        f"{noun} {rng.choice(('except', 'excluding', 'other than', 'apart from'))} those that {yes}",
        f"{noun}, {rng.choice(('leaving out', 'not including', 'not counting', 'but without'))} those that {yes}",
    ]
    if other:
        options += [f"{noun} {rng.choice(_NOT)} {other}" for _ in range(3)]
        options.append(f"{noun} without the {other}")
    if second.adjective and second.family in _NON:
        options.append(f"non-{second.adjective} {noun}")
    if frame := _alike([first, second]):
        options += [_asked(f"{frame[0]} {' but not '.join(frame[1])} {frame[2]}".strip(), rng)] * 3
    return rng.choice(options)


def _both_but_not(atoms: Sequence[Atom], rng: Random, implicit: bool) -> str:
    first, second, third = atoms
    no = rng.choice(third.negations)
    if implicit:
        base = _merged(first, second, rng)
        other = _second(base, third, rng)
        options = [f"{base} {'but' if ' that ' in base else 'that'} {no}"] * 2
        options += [f"{base} {rng.choice(_NOT)} {other}"] * 2 if other and " that " not in base else []
        return rng.choice(options) if base else ""
    noun = rng.choice(first.nouns)
    middle, other = _second(noun, second, rng), _second(noun, third, rng)
    own, yes = rng.choice(first.predicates), rng.choice(second.predicates)
    those = rng.choice(third.predicates)
    options = [
        _asked(f"{own} and {yes} but {no}", rng),
        _asked(f"both {own} and {yes}, but {no}", rng) if not _is_copula(own) else "",
        f"{noun} that also {yes} but {no}" if not _is_copula(yes) else "",
        _asked(f"{own} and also {yes}, except those that {those}", rng),
    ]
    if middle:
        also = rng.choice(_ALSO)
        options += [f"{noun} {also} {middle} but {no}", f"{noun} {also} {middle}, excluding those that {those}"]
        if other:
            cut = rng.choice(("but not", "but not", ", excluding", ", other than", ", except for", ", apart from"))
            options += [f"{noun} {also} {middle} {cut} {other}".replace(" ,", ",")] * 3
            options.append(f"{noun} that are {middle} as well, but not {other}")
    return rng.choice([option for option in options if option])
