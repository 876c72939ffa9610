# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Addresses of databases without their passwords: whatever is printed, raised or written has them from here.

An address may be slightly wrong, with an @ in its password or in quotes. So what could be a password is hidden, rather
than what is one by the rules of addresses.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

PASSWORDS = ("password", "passwd", "pwd", "apikey", "api_key", "api-key")  # how names of settings end that hold one,
SECRETS = (*PASSWORDS, "key", "token", "secret")  # and in an address, where no other words stand beside them
# What stands before the user's name: quotes and spaces, the drive of a path, the kind of database.
_HEAD = re.compile(
    r"""\W*(?:[a-z]:(?=\\|/(?!/)))?(?:(?:(?:qdrant|elasticsearch|opensearch|jdbc):)?[\w.+-]+:?//)?""", re.IGNORECASE
)
_COLON = re.compile(":|%3a", re.IGNORECASE)
_PORTS = re.compile(r"[^:/?#]*:\d*(?:,[^:/?#,]*(?::\d*)?)*(?=[/?#\s\"']|$)")
_NAME = r"(?<![\w%.-])([\w%.-]+?)(\s*(?:=|%3d)\s*)"  # of a setting, percent-encoded or not
_SETTING = re.compile(_NAME, re.IGNORECASE)
_NEXT = re.compile("&(?=[a-z_]+=)", re.IGNORECASE)
# The same in a message.
_USER_SAID = re.compile(r"(//[^\s/:@?#]*):[^\s/]*@")
_SETTING_SAID = re.compile(rf"""{_NAME}('[^']*'|"[^"]*"|[^\s&'"]+)""", re.IGNORECASE)


def _settings(address: str) -> Iterator[tuple[int, int]]:
    """Where the settings stand that hold a secret, up to the next one or the end."""
    for match in _SETTING.finditer(address):
        if unquote(match[1]).lower().endswith(SECRETS):
            following = _NEXT.search(address, match.end())
            yield match.start(), len(address) if following is None else following.end()


def shown_name(name: str) -> str:
    """The name of a store as it is printed: without what stands between the first : after the kind of database and the
    last @, and without the settings that hold a password or a key. The name of a folder stays as it is.

    >>> shown_name("postgresql://me:se:cr@t/@host:5432/db?host=/tmp&password=x"), shown_name("films.db")
    ('postgresql://me@host:5432/db?host=/tmp', 'films.db')
    >>> shown_name("postgres://me:secret@/db?passwor%64=x&sslmode=require"), shown_name("C:/me@work/films")
    ('postgres://me@/db?sslmode=require', 'C:/me@work/films')
    >>> shown_name(" 'my-db://me:secret@host'"), shown_name("elasticsearch+me:secret@host"), shown_name("pg://me:secret")
    (" 'my-db://me@host'", 'elasticsearch+me@host', 'pg://me')
    >>> shown_name("host=h user=me password='my secret'"), shown_name("postgresql://[::1]:5432/db")
    ('host=h user=me', 'postgresql://[::1]:5432/db')
    """
    head = _HEAD.match(name)
    start = head.end() if head else 0
    shown, rest = name[:start], name[start:]
    colon, at = _COLON.search(rest), rest.rfind("@")
    hidden = list(_settings(rest))
    if colon and colon.start() < at:
        hidden.append((colon.start(), at))
    elif colon and at < 0 and shown.endswith("//") and not rest.startswith("[") and not _PORTS.match(rest):
        hidden.append((colon.start(), len(rest)))  # no port but a password, behind which the host was forgotten
    shown += "".join(
        letter for place, letter in enumerate(rest) if not any(start <= place < end for start, end in hidden)
    )
    return shown if shown == name else shown.rstrip("?& ")


def without_secrets(message: str) -> str:
    """A message without the passwords of addresses that it repeats, as drivers do.

    >>> without_secrets("no route to http://me:secret@host:19530/ at 12:00, ask a@b.org; password='my secret'")
    'no route to http://me@host:19530/ at 12:00, ask a@b.org; password=***'
    >>> without_secrets("404 for https://host:6333/collections?api-key=secret")
    '404 for https://host:6333/collections?api-key=***'
    """

    def hidden(setting: re.Match[str]) -> str:
        is_secret = unquote(setting[1]).lower().endswith(PASSWORDS)
        return f"{setting[1]}{setting[2]}***" if is_secret else setting[0]

    return _SETTING_SAID.sub(hidden, _USER_SAID.sub(r"\1@", message))
