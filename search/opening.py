"""What a name stands for: a folder of documents or a vector store, and the model that it was made with."""

from pathlib import Path
from typing import TYPE_CHECKING

from boolbert.retrieval.index import STORE, Index
from boolbert.retrieval.models import SearchModel, load_model
from boolbert.retrieval.store_names import check_name, is_database

if TYPE_CHECKING:
    from boolbert.retrieval.stores import VectorStore


def open_index(name: str | Path) -> "Index | VectorStore":
    """A folder of `boolbert index`, or a store by its name."""
    check_name(name)
    if not is_store(name):
        return Index(name)
    from boolbert.retrieval.stores import existing_store

    return existing_store(name)


def is_store(name: str | Path) -> bool:
    """Whether a name is a store's, or that of an index which has become one."""
    text = str(name)
    return text.endswith(".faiss") or is_database(text) or (Path(name) / STORE).exists()


def model_of(index: "Index | VectorStore", device: str | None) -> SearchModel:
    """The model that an index was made with."""
    return load_model(index.model, device=device)
