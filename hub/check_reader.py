"""Load the published document reader in a fresh process, and compare what it says with what the package's own says."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ..retrieval.adapters import DOCUMENT_READER
from ..retrieval.document_reader import DocumentReader, passage, temperature_of
from ..retrieval.gpu_reader import GpuReader
from .assemble_reader import reader_encoder
from .check import differences, in_fresh_process

# Each text is short enough that the package reads all of it.
PAIRS = [
    ("a pool", "A quiet hotel. There is no pool."),
    ("a pool", "Swim before breakfast in our heated pool."),
    ("a pool", "Rooms with a view."),
    ("nuts", "Müsli bar, 40 g\nMade in a kitchen without nuts; sweetened with honey. Keep it dry and cool!"),
    ("a republic", "Iceland is an island.\nIts neighbours are far away. The king was sent home in 1944."),
    ("Which dogs may come along?", "The Old Mill. Dogs of any size are welcome, cats are not."),
]


def check_reader(folder: Path) -> dict[str, float]:
    """The largest difference for each way to load and call it; an error where it is more than rounding."""
    found = in_fresh_process(folder, {"pairs": PAIRS})
    own = own_probabilities(PAIRS)
    return differences(dict.fromkeys(found, own), found, "the document reader")


def own_probabilities(pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
    """What the package's reader says of each pair, in float32; on a CPU it rounds to int8."""
    exact = GpuReader(reader_encoder(), DOCUMENT_READER, "cpu", torch.float32)
    reader, no_clauses = DocumentReader(exact, temperature_of(DOCUMENT_READER)), np.empty(0, np.float32)
    found = reader.read([passage(condition, text, [], no_clauses) for condition, text in pairs])
    return np.array([(one.affirms, one.denies, one.silent) for one in found], np.float32)
