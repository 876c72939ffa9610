"""How the name of a store tells where it is, without opening it."""

import re

SERVERS = ("http://", "https://", "tcp://", "unix:")  # how the name of a Milvus server begins,
POSTGRES = ("postgresql://", "postgres://")  # that of a Postgres database,
QDRANT = "qdrant:"  # that of Qdrant: qdrant:http://host:6333, or qdrant:FOLDER
ELASTICSEARCH = ("elasticsearch+", "elasticsearch:")  # that of Elasticsearch: elasticsearch+https://host:9200,
OPENSEARCH = ("opensearch+", "opensearch:")  # and that of OpenSearch; one without + is told what would be right
_USER = re.compile(r"^([\w+]+:(?:\w+:)?//)([^:/?]*):.*@", re.DOTALL)
_SECRET = re.compile(r"([?&])[^&=]*(?:password|key|token)=[^&]*", re.IGNORECASE)


def is_database(name: str) -> bool:
    """Whether a name is that of a store that is no folder of this package.

    >>> is_database("postgresql://host/db"), is_database("films.db"), is_database("films")
    (True, True, False)
    """
    return name.endswith(".db") or is_server(name)


def is_server(name: str) -> bool:
    """Whether a name begins as an address does; the file of a mistyped name must not be made.

    >>> is_server("opensearch+https://host:9200"), is_server("films.db")
    (True, False)
    """
    return name.startswith((*SERVERS, *POSTGRES, QDRANT, *ELASTICSEARCH, *OPENSEARCH))


def shown_name(name: str) -> str:
    """A name as it is printed: without the password.

    >>> shown_name("postgresql://me:se:cr@t/@host:5432/db?host=/tmp&password=x"), shown_name("films.db")
    ('postgresql://me@host:5432/db?host=/tmp', 'films.db')
    >>> shown_name("postgres://me:secret@/db?password=x&sslmode=require")
    'postgres://me@/db?sslmode=require'
    """
    shown = _SECRET.sub(lambda match: match[1], _USER.sub(r"\1\2@", name))
    return re.sub(r"&+(?=&|$)", "", shown.replace("?&", "?")).rstrip("?&") if shown != name else name
