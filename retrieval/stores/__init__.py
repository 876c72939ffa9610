"""Vector stores: a folder, FAISS, Milvus, Postgres, Qdrant, Elasticsearch or OpenSearch, all with the same calls.

store = open_store("films.db")                          # Milvus Lite; pip install 'boolbert[milvus]'
store = open_store("http://host:19530", "films")        # a Milvus server or cluster
store = open_store("postgresql://host/db", "films")     # Postgres with pgvector; pip install 'boolbert[postgres]'
store = open_store("qdrant:http://host:6333", "films")  # Qdrant; pip install 'boolbert[qdrant]'
store = open_store("elasticsearch+https://host:9200", "films")  # or opensearch+https://host:9200
store = open_store("films.faiss")                       # a folder, searched through FAISS
store = open_store("films")                             # a folder, exact, without a server
"""

from pathlib import Path

from boolbert.core.addresses import shown_name
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.records import Record
from boolbert.retrieval.store_names import (
    ELASTICSEARCH,
    OPENSEARCH,
    POSTGRES,
    QDRANT,
    check_name,
    is_database,
    is_server,
)

from .base import StoreHit, VectorStore
from .file_store import FileStore
from .writing import copy_documents, index_documents

__all__ = [
    "About",
    "FileStore",
    "Record",
    "StoreHit",
    "VectorStore",
    "copy_documents",
    "existing_store",
    "index_documents",
    "open_store",
]


def open_store(
    name: str | Path, collection: str | None = None, *, token: str | None = None, faiss: str | None = None
) -> VectorStore:
    """The store of this name, whether it exists yet or not.

    token: of a server of Milvus or Qdrant, the API key of Elasticsearch, or the password of OpenSearch. faiss: the kind
    of index of a new FAISS store.
    """
    text = str(name)
    check_name(text)
    if token is not None and not token.isprintable():
        raise RetrievalError(f"{shown_name(text)}: its key or password holds a line break or a control character")
    is_faiss = text.endswith(".faiss")
    if faiss and not is_faiss:
        raise RetrievalError(f"--faiss is for a store whose name ends with .faiss, got {shown_name(text)!r}")
    if text.startswith(POSTGRES):
        from .postgres_store import PostgresStore

        return PostgresStore(text, collection)
    if text.startswith(QDRANT):
        from .qdrant_store import QdrantStore

        return QdrantStore(text, collection, token=token)
    if text.startswith((*ELASTICSEARCH, *OPENSEARCH)):
        from .elasticsearch_store import ElasticsearchStore

        return ElasticsearchStore(text, collection, token=token)
    if is_database(text):
        from .milvus_store import MilvusStore

        return MilvusStore(text, collection, token=token)
    if collection is not None:
        raise RetrievalError(f"--collection is for a database; {text!r} is a folder of one collection")
    if is_faiss:
        from .faiss_store import FaissStore

        return FaissStore(text, faiss)
    return FileStore(text)


def existing_store(name: str | Path, collection: str | None = None, *, token: str | None = None) -> VectorStore:
    """The same, to read from it: Milvus Lite would make a file of a name that was mistyped."""
    check_name(name)
    if str(name).endswith(".db") and not is_server(str(name)) and not Path(name).exists():
        raise RetrievalError(f"{name}: no store there; make one with: boolbert index DOCS.jsonl --store {name}")
    return open_store(name, collection, token=token)
