# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Addresses of databases without their passwords: whatever is printed, raised or written has them from here.

An address may be slightly wrong, with an @ in its password or in quotes. So what could be a password is hidden, rather
than what is one by the rules of addresses.
"""

import re


def _spelled(word: str) -> str:
    """A pattern for a word, each of its letters as it is or percent-encoded."""
    return "".join(f"(?:{letter}|%{ord(letter):02x}|%{ord(letter.upper()):02x})" for letter in word)


_PASSWORD = "|".join(map(_spelled, ("password", "passwd", "pwd")))
_KEY = "|".join(map(_spelled, ("secret", "token", "key")))
_IS = r"\s*(?:=|%3d)"
# What stands before the user's name: quotes and spaces, the drive of a path, the kind of database.
_HEAD = re.compile(
    r"""\W*(?:[a-z]:(?=\\|/(?!/)))?(?:(?:(?:qdrant|elasticsearch|opensearch|jdbc):)?[\w.+-]+:?//)?""", re.IGNORECASE
)
_COLON = re.compile(":|%3a", re.IGNORECASE)
_PORTS = re.compile(r"[^:/?#]*:\d*(?:,[^:/?#,]*(?::\d*)?)*(?=[/?#\s\"']|$)")
_SETTING = re.compile(
    rf"(?<![\w%.-])[\w%.-]*(?:{_PASSWORD}|{_KEY}){_IS}.*?(?:&(?=[a-z_]+=)|$)", re.IGNORECASE | re.DOTALL
)
# The same in a message, where other words stand beside the address.
_USER_SAID = re.compile(r"(//[^\s/:@?#]*):[^\s/]*@")
_SETTING_SAID = re.compile(rf"((?:{_PASSWORD}|api_?key){_IS}\s*)(?:'[^']*'|\"[^\"]*\"|[^\s&'\"]+)", re.IGNORECASE)


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
    hidden = [match.span() for match in _SETTING.finditer(rest)]
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
    """
    return _SETTING_SAID.sub(r"\1***", _USER_SAID.sub(r"\1@", message))
