"""Load the assembled folder in a fresh, offline process through both doors, and compare with the run itself."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .assemble import is_boolean
from ..errors import HubError

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
    """The largest difference by each door, relative to the vectors' size; an error where it is more than rounding."""
    expected = own_vectors(run)
    found = strangers_vectors(folder, bool(is_boolean(folder)))
    differences = {}
    for door, vectors in expected.items():
        if found[door].shape != vectors.shape:
            raise HubError(f"the check failed: {door} gives {found[door].shape}, the run gives {vectors.shape}")
        difference = float(np.abs(found[door] - vectors).max() / np.abs(vectors).max())
        if not difference <= TOLERANCE:
            raise HubError(f"the check failed: {door} differs from the run's own by {difference:.1e}")
        differences[door] = difference
    return differences


def own_vectors(run: Path) -> Vectors:
    """What the run gives, by this package's own classes."""
    import torch

    from ..sentence_boolbert import load_dual_encoder

    try:
        model = load_dual_encoder(run, device="cpu", local_files_only=True)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise HubError(f"{run}: does not load with this version of the package: {reason[0]}") from None
    query_encoder = model.transformers_model  # the first one: the query's
    if query_encoder is None:
        raise HubError(f"{run}: holds no transformers model")
    batch = model.tokenizer(QUERIES, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        states = query_encoder.eval()(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    vectors = {
        "AutoModel": ((states * mask).sum(1) / mask.sum(1)).numpy(),
        "encode_query": model.encode_query(QUERIES),
        "encode_document": model.encode_document(DOCUMENTS),
    }
    if is_boolean(run):
        vectors["encode_query with operators"] = model.encode_query(QUERIES, operators=OPERATORS)
    return vectors


def strangers_vectors(folder: Path, operators: bool) -> Vectors:
    """What somebody gets who has only the folder: no package, no network, no caches."""
    with tempfile.TemporaryDirectory() as scratch:
        texts, output = Path(scratch, "texts.json"), Path(scratch, "vectors.npz")
        given = {"queries": QUERIES, "documents": DOCUMENTS, "operators": OPERATORS if operators else None}
        texts.write_text(json.dumps(given), encoding="utf-8")
        # No token goes along, and none could be found: the code that runs is the folder's.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": scratch, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        environment |= {"TOKENIZERS_PARALLELISM": "false"}
        script = Path(__file__).with_name("stranger.py")
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
            reason = done.stderr.strip().splitlines() or ["no message"]
            raise HubError(f"the check failed: the folder does not load in a fresh process: {reason[-1]}")
        with np.load(output) as arrays:
            return dict(arrays)
