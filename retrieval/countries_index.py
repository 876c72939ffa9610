"""The index that is searched where none is named: the embedded countries, kept in the user's cache.

python -m boolbert.retrieval.countries_index       # writes countries_vectors.safetensors, after texts or clauses change

For the default encoder the vectors come with the package, since encoding the countries would be most of the wait for a
first answer: those of the documents in float16, those of their clauses in int8, as evidence keeps them.
"""

import hashlib
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boolbert import boolean
from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import RetrievalError, reason, run_script
from boolbert.core.files import cache_root, check_regular, delete, whole_folder
from boolbert.data import Corpus, Quest
from boolbert.data.embedded import countries_folder
from boolbert.retrieval.evidence import evidence_of, in_bytes
from boolbert.retrieval.fingerprints import corpus_fingerprint, document_encoder_of
from boolbert.retrieval.index import Index, build_index, clause_encoder, is_index, write_index

if TYPE_CHECKING:
    from boolbert.retrieval.models import SearchModel

BATCH = 32
STORED = Path(__file__).parent / "countries_vectors.safetensors"
WRITE = ("countries_index", "evidence", "index", "records", "shards", "words")  # the modules that write an index
# Where a folder for one process is made: on a disk, else in memory.
TEMPORARY = (None, "/dev/shm")  # nosec B108


def default_index(model: "SearchModel", *, progress: bool = True) -> Index:
    """The embedded countries, encoded once for each document encoder and kept in the user's cache."""
    encoder = document_encoder_of(model)
    name = Path("indexes", f"countries-{_version()}-{encoder}-evidence")
    with suppress(RetrievalError, OSError):  # whatever is wrong with a cache, it can be made again
        return _opened(cache_root() / name)
    try:
        return _made(cache_root() / name, model, encoder, progress)
    except OSError as error:
        problem = f"{cache_root()}: {reason(error)}"
    for root in TEMPORARY:
        with suppress(OSError):
            return _made(Path(_temporary_cache(root, problem).name, name), model, encoder, progress)
    raise RetrievalError(f"{problem}; nor is there room for the countries in a temporary folder")


def _opened(folder: Path) -> Index:
    """The index in a folder; raises where a part of it is missing or damaged, or is no file."""
    for path in folder.rglob("*"):
        if not path.is_dir():
            check_regular(path, RetrievalError)
    index = Index(folder)
    _ = index.evidence
    return index


def _made(folder: Path, model: "SearchModel", encoder: str, progress: bool) -> Index:
    if is_index(folder):  # it could not be opened
        delete(folder)
    corpus = countries()
    if write_stored(folder, corpus, encoder):
        return Index(folder)
    return build_index(corpus, folder, model, progress=progress, float32=True)


def _version() -> str:
    """Changes with the texts, with how they are taken apart and with the code that writes an index of them."""
    digest = hashlib.sha256()
    retrieval = [Path(__file__).with_name(f"{name}.py") for name in WRITE]
    sources = sorted(Path(boolean.__file__).parent.glob("*.*"))
    for source in (countries_folder() / "documents.jsonl", *sources, *retrieval):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _temporary_cache(root: str | None, problem: str) -> "tempfile.TemporaryDirectory[str]":
    """One folder for this process, deleted at its end."""
    warnings.warn(f"the cache cannot be written ({problem}); using a temporary folder", stacklevel=3)
    return tempfile.TemporaryDirectory(prefix="boolbert-", dir=root, ignore_cleanup_errors=True)


def countries() -> Corpus:
    return Quest(progress=False).corpus


def write_stored(folder: Path, corpus: Corpus, document_encoder: str, stored: Path = STORED) -> bool:
    """Write the index of the vectors that come with the package. False, and nothing written, where they are of other
    documents or of another encoder, or lack a clause.
    """
    from safetensors import safe_open

    with safe_open(stored, framework="np") as file:
        if file.metadata() != {"corpus": corpus_fingerprint(corpus), "document_encoder": document_encoder}:
            return False
        documents, clauses, scales, hashes = map(file.get_tensor, ("documents", "clauses", "scales", "hashes"))
    rows = {number: row for row, number in enumerate(hashes.tolist())}

    def look_up(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        found = np.array([rows[text_hash(text)] for text in texts])
        return clauses[found].astype(np.float32) * scales[found, None].astype(np.float32)

    if folder.exists() and not is_index(folder):  # a call was cut off
        delete(folder)
    with suppress(KeyError), whole_folder(folder) as aside:
        about = {"model": None, "document_encoder": document_encoder, "source": corpus.name, "fields": dict[str, str]()}
        said = evidence_of(corpus.texts(), look_up)
        write_index(aside, corpus, None, documents.astype(np.float32), about, said)
    return is_index(folder)


def text_hash(text: str) -> int:
    """64 bits of a text's hash.

    >>> text_hash("It borders Kenya.") == text_hash("It borders Chad.")
    False
    """
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def store(model: "SearchModel") -> None:
    """Write the vectors that come with the package."""
    from safetensors.numpy import save_file

    from boolbert.retrieval.batches import encode_inputs

    corpus = countries()
    texts = corpus.texts()
    spoken = sorted({text[clause.start : clause.end] for text in texts for clause in split_clauses(text)})
    clauses, scales = in_bytes(clause_encoder(model)(spoken))
    documents = encode_inputs(model.encoder, texts, "document", BATCH).astype(np.float16)
    hashes = np.array([text_hash(text) for text in spoken])
    tensors: dict[str, Any] = {"documents": documents, "clauses": clauses, "scales": scales, "hashes": hashes}
    known = {"corpus": corpus_fingerprint(corpus), "document_encoder": document_encoder_of(model)}
    save_file(tensors, STORED, metadata=known)


if __name__ == "__main__":
    from boolbert.retrieval.models import default_model

    run_script(lambda: store(default_model()))
