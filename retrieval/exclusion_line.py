"""A line that leaves out documents which have what a query excludes, with a stated error rate.

Evidence becomes a probability: how sure is it that a document has what is excluded? Documents above a line on it are
left out, and the line is chosen so that of those that remain at most a promised share have it. Conformal risk control
(Angelopoulos et al., 2022) chooses it on exclusions whose documents are known. The promise holds on average over
queries that are like those.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.evidence import Array, Evidence
from boolbert.retrieval.passages import family_of, largest_of_documents
from boolbert.retrieval.scoring import Asked, Question

PROMISES = (0.01, 0.02, 0.05, 0.1, 0.2)  # shares of the returned documents that have what is excluded
DEPTHS = (10, 30, 100)  # the promise is for lists of these lengths
CALIBRATION_DEPTH = 300  # documents of each exclusion that a line is calibrated on
SIGNS = (1, -1, 1, -1)  # what each feature says: affirming clause, denying clause, words, denied words
GRID = 400  # lines that are tried
RIDGE = 1e-4  # keeps the weights finite where the features tell members from others without an error
REMAIN = 0.5  # of the documents looked at have to remain
MOSTLY = 0.95  # of the exclusions, for which that has to hold
OUTDATED = -1  # the `content` of a line in a database whose documents have changed since
UNLIKE = 0.05  # share of the calibration's exclusions whose evidence is below `least`, where an answer warns

Rows = npt.NDArray[np.int64]


class KnownExclusion(NamedTuple):
    """A query's documents, best first: the features of each excluded part (P, F, N), and which have it (N,)."""

    features: Array
    has: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ExclusionLine:
    """What was calibrated on an index's documents.

    weights: of the features, and last the constant. lines: for each of PROMISES the probability above which a document
    is left out; None where there were too few exclusions for it. exclusions: how many there were. least: evidence for
    something excluded that hardly any of them was below. encoder: the fingerprint of the document encoder. content: the
    check sum of the documents' ids and digests; in a database 0, or OUTDATED.
    """

    weights: tuple[float, ...]
    lines: tuple[float | None, ...]
    exclusions: int
    documents: int
    least: float
    encoder: str
    content: int = 0

    def probabilities(self, features: Array) -> Array:
        """How sure it is that documents (N,) have something of what is excluded: features (P, F, N)."""
        logits = np.einsum("pfn,f->pn", features, np.array(self.weights[:-1])) + self.weights[-1]
        return 1 - np.prod(1 - 1 / (1 + np.exp(-logits)), axis=0)

    @property
    def promises(self) -> list[float]:
        """Those of PROMISES that can be kept."""
        return [promise for promise, line in zip(PROMISES, self.lines, strict=True) if line is not None]

    def at(self, promise: float) -> float:
        """The line for a promise."""
        if promise not in PROMISES:
            raise RetrievalError(f"violations must be one of {', '.join(map(str, PROMISES))}, got {promise}")
        line = self.lines[PROMISES.index(promise)]
        if line is None:
            instead = f"ask for {self.promises[0]}" if self.promises else "they say too little of what is asked for"
            raise RetrievalError(
                f"violations {promise} cannot be promised for these documents, by {self.exclusions} exclusions tried "
                f"on them; {instead}"
            )
        return line

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, content: Any, name: str, encoder: str) -> "ExclusionLine":
        """The line that an index or a store keeps; `encoder`: the one whose documents it holds."""
        again = f"boolbert index {name} --calibrate"
        if content is None:
            raise RetrievalError(f"{name}: violations cannot be promised before it is calibrated: {again}")
        try:
            line = cls(**{field.name: content[field.name] for field in fields(cls)})
            numbers = [*line.weights, line.least, *(own for own in line.lines if own is not None)]
            sound = len(line.weights) == len(SIGNS) + 1 and len(line.lines) == len(PROMISES) and line.exclusions > 0
            sound = sound and all(type(count) is int for count in (line.exclusions, line.documents, line.content))
            if not sound or not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise RetrievalError(f"{name}: its calibration is damaged; make it again: {again}") from None
        if line.encoder != encoder:
            raise RetrievalError(f"{name}: its calibration is another encoder's; make it again: {again}")
        return line


def features_of(evidence: Evidence, excluded: Sequence[Asked], rows: Rows, wholes: Rows | None = None) -> Array:
    """What documents say about each excluded part: (P, F, N), in the order of SIGNS. wholes: for each row the number of
    its document, of which all passages are asked."""
    asked = rows if wholes is None else family_of(wholes, rows)
    affirming, denying = evidence.best(np.stack([part.vector for part in excluded]), asked)
    words, denied = (
        np.stack([evidence.words.scores(getattr(part, name))[asked] for part in excluded])
        for name in ("words", "denied_words")
    )
    found = np.stack([affirming, denying, words, denied], axis=1)
    for number, part in enumerate(excluded):
        if part.denies:  # "those that do not allow pets": who denies pets has what is excluded
            found[number] = found[number][[1, 0, 3, 2]]
    return found if wholes is None else largest_of_documents(found, asked, wholes)[..., wholes[rows]]


def excludes(question: Question) -> bool:
    """Whether a line can leave out documents: something is excluded, and it is no property of the answer."""
    return bool(question.excluded and question.weights.penalty)


def calibrated_line(known: Sequence[KnownExclusion], documents: int, encoder: str, content: int = 0) -> ExclusionLine:
    """The line of exclusions whose documents are known. content: `ExclusionLine.content`."""
    if not any(one.has.any() for one in known):
        raise RetrievalError("no line can be calibrated: no exclusion could be made from the documents")
    unknown = (None,) * len(PROMISES)
    line = ExclusionLine(_fitted_weights(known), unknown, len(known), documents, _least(known), encoder, content)
    probabilities = [line.probabilities(one.features) for one in known]
    grid = useful_lines(probabilities)
    losses = np.array([losses_of(p, one.has, grid) for p, one in zip(probabilities, known, strict=True)])  # (Q, K, G)
    risk = ((losses.sum(0) + 1) / (len(losses) + 1)).max(0)  # as if every result of one more exclusion had violated it
    lines = tuple(float(grid[risk <= promise][-1]) if (risk <= promise).any() else None for promise in PROMISES)
    return replace(line, lines=lines)


def useful_lines(probabilities: Sequence[Array]) -> Array:
    """Lines to choose from, the lowest first: those that leave enough documents for nearly all exclusions."""
    grid = np.append(np.unique(np.quantile(np.concatenate(probabilities), np.linspace(0, 1, GRID))), 1.0)
    remain = np.array([(p <= grid[:, None]).mean(1) for p in probabilities])
    return grid[(remain >= REMAIN).mean(0) >= MOSTLY]


def losses_of(probabilities: Array, has: npt.NDArray[np.bool_], grid: Array) -> npt.NDArray[np.float64]:
    """The share of the returned documents that have what is excluded: (K, G), for each of DEPTHS and each line.

    It never falls as the line rises, which the choice of a line needs.

    >>> losses_of(np.array([0.1, 0.9]), np.array([False, True]), np.array([0.5, 1.0]))[0].tolist()
    [0.0, 0.5]
    """
    kept = probabilities <= grid[:, None]  # (G, N)
    place = np.cumsum(kept, axis=1)
    shares = []
    for depth in DEPTHS:
        returned = kept & (place <= depth)
        shares.append((returned & has).sum(1) / np.maximum(returned.sum(1), 1))
    return np.maximum.accumulate(shares, axis=1)


def _fitted_weights(known: Sequence[KnownExclusion]) -> tuple[float, ...]:
    """Logistic regression in which each feature speaks for what it means: an affirming clause never against."""
    from scipy.optimize import minimize

    single = [one for one in known if len(one.features) == 1]  # of several parts it is not known which one it has
    features = np.concatenate([one.features[0] for one in single], axis=1).astype(np.float64)
    features = np.vstack([features, np.ones(features.shape[1])])
    target = np.where(np.concatenate([one.has for one in single]), 1.0, -1.0)

    def loss(weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        margin = target * (weights @ features)
        slope = -target / (1 + np.exp(margin))
        ridge = RIDGE * float(weights @ weights)
        return float(np.logaddexp(0, -margin).mean()) + ridge, features @ slope / len(target) + 2 * RIDGE * weights

    bounds = [(0, None) if sign > 0 else (None, 0) for sign in SIGNS] + [(None, None)]
    found = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds)
    return tuple(round(float(weight), 4) for weight in found.x)


def _least(known: Sequence[KnownExclusion]) -> float:
    best = [float(one.features[:, 0].max(initial=0)) for one in known]
    return round(float(np.quantile(best, UNLIKE)), 4)
