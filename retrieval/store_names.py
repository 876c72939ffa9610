"""How the name of a store tells where it is, without opening it."""

import re
from pathlib import Path

from boolbert.core.addresses import shown_name
from boolbert.core.errors import RetrievalError

SERVERS = ("http://", "https://", "tcp://", "unix:")  # how the name of a Milvus server begins,
POSTGRES = ("postgresql://", "postgres://")  # that of a Postgres database,
QDRANT = "qdrant:"  # that of Qdrant: qdrant:http://host:6333, or qdrant:FOLDER
ELASTICSEARCH = ("elasticsearch+", "elasticsearch:")  # that of Elasticsearch: elasticsearch+https://host:9200,
OPENSEARCH = ("opensearch+", "opensearch:")  # and that of OpenSearch; one without + is told what would be right
ADDRESSES = (
    "addresses begin with postgresql://, http:// or https:// (Milvus), qdrant:http://, elasticsearch+https:// or "
    "opensearch+https://, and have no spaces or quotes around them"
)
EXAMPLES: dict[str | tuple[str, ...], str] = {
    POSTGRES: "postgresql://user@host/database",
    QDRANT: "qdrant:https://host:6333",
    ELASTICSEARCH: "elasticsearch+https://user@host:9200",
    OPENSEARCH: "opensearch+https://user@host:9200",
    SERVERS: "https://host:19530",
}
_HOST = r"""(?:\[[^\]@]*\]|[^\s:@/?#,\[\]"']*)(?::\d*)?"""
_ADDRESS = re.compile(rf"(?:(?P<user>[^@/?#\s]*)@)?(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<rest>(?:[/?#].*)?)", re.DOTALL)
_PLAIN_USER = re.compile(r"[\w.~!$&'()*+,;=:%-]*", re.ASCII)  # what may stand before the @ of a server's address


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


def check_name(name: str | Path) -> None:
    """Raise for an address that is none, or could be read in two ways: nothing is made or asked by such a name, and no
    driver gets to quote what may be a part of the password."""
    text = str(name)
    if not is_server(text):
        check_folder_name(text)
    elif text.startswith(QDRANT) and "://" not in text:
        check_folder_name(text.removeprefix(QDRANT))
    elif "://" in text and not _is_clear(text.partition("://")[2], is_plain=not text.startswith(POSTGRES)):
        raise no_address(text)


def no_address(name: str) -> RetrievalError:
    """What to say of an address that cannot be read."""
    right = next(right for start, right in EXAMPLES.items() if name.startswith(start))
    return RetrievalError(
        f"{shown_name(name)}: cannot be read as the address of a database; expected {right}, with % signs for what is "
        "no letter or digit: %40 for an @"
    )


def check_folder_name(name: str | Path) -> None:
    """Raise for the name of a folder or file that looks like an address with a password."""
    shown = shown_name(str(name))
    if shown != str(name) or "://" in shown:
        raise RetrievalError(f"{shown}: no such kind of store; {ADDRESSES}")


def _is_clear(rest: str, *, is_plain: bool = False) -> bool:
    """Whether there is one way to read an address, from behind its ://. is_plain: what is no letter has to be encoded.

    >>> _is_clear("me:a%40b@h1:1,[::1]:2/db?host=/tmp"), _is_clear("h:1/db?user=me@work"), _is_clear("h/a@b")
    (True, True, True)
    >>> _is_clear("me:a@b@h/db"), _is_clear("me:a/b@h/db"), _is_clear("me:secret/db"), _is_clear("me:1/2@h/db")
    (False, False, False, False)
    """
    match = _ADDRESS.fullmatch(rest)
    if match is None or (is_plain and not _PLAIN_USER.fullmatch(match["user"] or "")):
        return False
    has_password, before = ":" in (match["user"] or ""), match["rest"].partition("?")[0]
    return "@" not in match["rest"] or not (has_password or (":" in match["hosts"] and "@" in before))
