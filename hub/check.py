"""Load the assembled folder in a fresh, offline process, and compare its vectors with the run's own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.errors import HubError
from ..core.runs import Run
from .load_published import vectors_of
from .publish import one_line

Vectors = dict[str, npt.NDArray[np.float32]]
# Rounding differs with the order of the sums; a wrong weight or a lost operator is far above this.
TOLERANCE = 1e-3
TIMEOUT = 600

QUERIES = [
    "landlocked countries in Africa that are not former British colonies",
    "islands",
    "films set in Vietnam but not about war",
    "countries in Europe or Asia",
    "monarchies that are also islands",
]
OPERATORS = [["and", "not"], [], ["not"], ["or"], ["and"]]
DOCUMENTS = ["Chad is a landlocked country in Africa.", "Iceland is an island.", "A film about the war in Vietnam."]


def check(run: Path, folder: Path) -> dict[str, float]:
    """The largest difference for each way to load and call the model; an error where it is more than rounding.

    Differences are relative to the largest number in the run's own vectors.
    """
    return differences(own_vectors(run), published_vectors(folder), "the run")


def differences(expected: Vectors, found: Vectors, whose: str) -> dict[str, float]:
    """The same of what is expected, `whose` own, and what was found."""
    found_differences = {}
    for way, vectors in expected.items():
        if found[way].shape != vectors.shape:
            raise HubError(f"the check failed: {way} gives {found[way].shape}, {whose} gives {vectors.shape}")
        difference = float(np.abs(found[way] - vectors).max() / np.abs(vectors).max())
        if not difference <= TOLERANCE:  # also where it is not a number
            raise HubError(f"the check failed: {way} differs from {whose}'s own by {difference:.1e}")
        found_differences[way] = difference
    return found_differences


def own_vectors(run: Path) -> Vectors:
    """What the run gives, by this package's own classes."""
    from ..sentence_boolbert import load_dual_encoder

    try:
        model = load_dual_encoder(run, device="cpu", local_files_only=True)
    except Exception as error:  # whatever is wrong with the files: each of the libraries has its own errors
        raise HubError(f"{run}: does not load with this version of the package: {one_line(error)}") from None
    # Its first transformers model is the query's.
    return vectors_of(model, model.transformers_model, model.tokenizer, inputs_for(Run(run)))


def inputs_for(run: Run) -> dict[str, Any]:
    return {"queries": QUERIES, "documents": DOCUMENTS, "operators": OPERATORS if run.is_bool_bert else None}


def published_vectors(folder: Path) -> Vectors:
    """The vectors that a user gets with the folder alone."""
    return in_fresh_process(folder, inputs_for(Run(folder)))


def in_fresh_process(folder: Path, inputs: Mapping[str, Any]) -> Vectors:
    """What `load_published.py` makes of the inputs with the folder alone: no package, no network, no caches."""
    with tempfile.TemporaryDirectory() as scratch:
        texts, output = Path(scratch, "texts.json"), Path(scratch, "vectors.npz")
        texts.write_text(json.dumps(inputs), encoding="utf-8")
        # No token goes along, and none could be found: the code that runs is the folder's.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": scratch, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        environment |= {"TOKENIZERS_PARALLELISM": "false"}
        script = Path(__file__).with_name("load_published.py")
        try:
            done = subprocess.run(
                # -P: the folder of the script is not searched for modules.
                [sys.executable, "-P", str(script), str(folder.resolve()), str(texts), str(output)],
                cwd=scratch,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise HubError(f"the check failed: loading took more than {TIMEOUT} s") from None
        if done.returncode:
            reason = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
            raise HubError(f"the check failed: the folder does not load in a fresh process: {reason[-1]}")
        with np.load(output) as arrays:
            return dict(arrays)
