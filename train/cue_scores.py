"""How well cues and operators are found: F1 over tokens, per operator and kind of cue, and the gate's accuracy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.boolean import OPERATORS
from boolbert.train.sentences import KINDS


def f1(hits: int, wrong: int, missed: int) -> float:
    """
    >>> f1(hits=3, wrong=1, missed=1)
    0.75
    """
    return 2 * hits / (2 * hits + wrong + missed) if hits + wrong + missed else 1.0


def cue_scores(predicted: npt.NDArray[np.bool_], kinds: npt.NDArray[Any]) -> dict[str, Any]:
    """Token-level scores from predictions and true kinds, both (tokens, 3).

    A kind's F1 leaves out the tokens of the other kind; a token that is no cue and was taken for one counts in each.

    >>> predicted = np.array([[True, False, False], [True, False, False], [False, False, True]])
    >>> scores = cue_scores(predicted, np.array([[1, 0, 0], [0, 0, 0], [0, 0, 2]]))
    >>> round(scores["cue_f1_and"], 3), scores["cue_f1_not"], scores["kinds"]["not"]["several words"]["tokens"]
    (0.667, 1.0, 1)
    """
    scores: dict[str, Any] = {}
    by_kind: dict[str, Any] = {}
    for index, operator in enumerate(OPERATORS):
        found, kind = predicted[:, index], kinds[:, index]
        wrong = int((found & (kind == 0)).sum())
        scores[f"cue_f1_{operator}"] = f1(int((found & (kind > 0)).sum()), wrong, int((~found & (kind > 0)).sum()))
        by_kind[operator] = {
            name: {
                "tokens": int((kind == code).sum()),
                "f1": f1(int((found & (kind == code)).sum()), wrong, int((~found & (kind == code)).sum())),
                "recall": float(found[kind == code].mean()) if (kind == code).any() else None,
            }
            for code, name in enumerate(KINDS)
            if code
        }
    return {"cue_f1": float(np.mean(list(scores.values()))), **scores, "kinds": by_kind}


def gate_scores(predicted: npt.NDArray[Any], operators: npt.NDArray[Any]) -> dict[str, float]:
    """Accuracy of the predicted operators, (sentences, 3): of all three together, and of each.

    >>> gate_scores(np.array([[1, 0, 0], [0, 0, 1]]), np.array([[1, 0, 0], [0, 1, 1]]))["gate_accuracy"]
    0.5
    """
    right = predicted == operators
    each = {f"gate_accuracy_{operator}": float(right[:, index].mean()) for index, operator in enumerate(OPERATORS)}
    return {"gate_accuracy": float(right.all(axis=1).mean()), **each}
