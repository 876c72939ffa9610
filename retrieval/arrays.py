"""Arrays on disk, read as what they were written as, or not at all."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def load_array(path: Path, kind: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """The array of a .npy file, mapped into memory. Raises a ValueError where it is of another type or shape.

    kind: a type's name, or "unsigned" for integers of any size. shape: None for any length but 0.
    """
    found = np.asarray(np.load(path, mmap_mode="r"))
    is_kind = found.dtype.kind == "u" if kind == "unsigned" else found.dtype == kind
    if not is_kind or found.ndim != len(shape) or not all(map(_fits, shape, found.shape)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{path.name} holds {found.dtype} {found.shape}, not {kind} ({wanted})")
    return found


def _fits(wanted: int | None, length: int) -> bool:
    return length > 0 if wanted is None else length == wanted
