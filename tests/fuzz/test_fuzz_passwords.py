"""No password of an address is ever printed, raised or written, however wrong the address is."""

import functools
import io
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path

import pytest
from fuzz.strategies import fuzz
from hypothesis import given
from hypothesis import strategies as st

from boolbert import obey
from boolbert.cli.main import build_parser, main
from boolbert.core.addresses import shown_name
from boolbert.core.errors import BoolBertError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores import FileStore, existing_store, open_store
from boolbert.search import BoolSearcher, Index, build_index

# What stands in a made-up password: pieces that are in nothing else that is printed, and signs between them.
PIECES = ("Xq7vKq", "Zw9RpW", "Jh4LtJ")
SIGNS = ("", "@", ":", "/", "?", "#", "%", "&", "=", "+", " ", "'", '"', "\\", "[", "]", "@@", "/@", "%zz", "é", "\n")
SCHEMES = (
    "postgresql://", "postgres://", "POSTGRESQL://", "postgresql:///", "postgresql//", "postgresql:/", "postgresql:",
    "postgres:", "my-db://", "mysql+pymysql://", "elasticsearch+", "elasticsearch+https://", "elasticsearch:https://",
    "opensearch+http://", "opensearch+", "qdrant:http://", "qdrant:", "qdrant://", "ftp://", "jdbc:postgresql://", "",
)  # fmt: skip
FORMS = (
    "{scheme}{user}:{password}@127.0.0.1:9/db",
    "{scheme}{user}:{password}@127.0.0.1:9/films.db",
    "{scheme}{user}:{password}@127.0.0.1:9/films.faiss",
    "{scheme}{user}:{password}@[::1]:9/db?sslmode=require",
    "{scheme}127.0.0.1:9/db?user=me&{key}={password}",
    "{scheme}{user}@127.0.0.1:9/db?{key}={password}&sslmode=require",
    "host=127.0.0.1 port=9 user=me {key}={password} dbname=db",
    "user=me {key} = '{password}' host=127.0.0.1",
)
KEYS = ("password", "PASSWORD", "passwor%64", "%50assword", "sslpassword", "Pass%77ord")
AROUND = ("{}", " {}", "{} ", '"{}"', "'{}'", "\t{}\n", "DATABASE_URL={}", "`{}`")
QUERY = "films but not about war"


def made(form, scheme="postgresql://", password="Xq7vKq", key="password", user="me", around="{}"):
    return around.format(form.format(scheme=scheme, user=user, password=password, key=key))


@st.composite
def passwords(draw):
    """Of one to three pieces; the first sign is none by which an address would end in a rightful way."""
    pieces = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3, unique=True))
    return "".join(piece + draw(st.sampled_from(SIGNS)) for piece in pieces)


addresses = st.builds(
    made,
    st.sampled_from(FORMS),
    st.sampled_from(SCHEMES),
    passwords(),
    st.sampled_from(KEYS),
    st.sampled_from(("me", "", "me%40work", "first.last")),
    st.sampled_from(AROUND),
)
# What people have typed.
TYPED = [
    "postgresql://me:Xq7vKq@Zw9RpW@127.0.0.1/db",
    "my-db://me:Xq7vKq@127.0.0.1",
    " postgresql://me:Xq7vKq@127.0.0.1/db",
    '"postgresql://me:Xq7vKq@127.0.0.1/db"',
    "'postgresql://me:Xq7vKq@127.0.0.1/db'",
    "postgresql://me@127.0.0.1:9/db?passwor%64=Xq7vKq",
    "elasticsearch+me:Xq7vKq@127.0.0.1",
    "host=127.0.0.1 user=me password=Xq7vKq",
    "host=127.0.0.1 user=me password='Xq7vKq Zw9RpW'",
    "postgres:me:Xq7vKq@127.0.0.1/db",
    "postgresql//me:Xq7vKq@127.0.0.1/db",
    "postgresql:/me:Xq7vKq@127.0.0.1/db",
    "me:Xq7vKq@127.0.0.1/db",
    "postgresql://me:Xq7vKq",
    "postgresql://me:Xq7vKq/db",
    "postgresql://me:Xq7vKq%40127.0.0.1/db",
    "postgresql://me%3AXq7vKq@127.0.0.1/db",
    "postgresql://me:Xq7vKq@127.0.0.1:port/db",
    "postgresql://me:Xq7vKq@/db?host=/nowhere&password=Zw9RpW",
    "postgresql://me@127.0.0.1:9/db?sslmode=nonsense&password=Zw9RpW",
    "postgresql://me:Xq7vKq%zz@127.0.0.1/db",
    "postgresql://me:1/Xq7vKq@127.0.0.1/db",
    "postgresql://me:a?Xq7vKq=b@127.0.0.1/db",
    "qdrant:me:Xq7vKq@127.0.0.1",
    "qdrant:http://me:Xq7vKq@Zw9RpW@127.0.0.1:9",
    "http://me:Xq7vKq@Zw9RpW@127.0.0.1:9",
    "http://127.0.0.1:nine?token=Xq7vKq",
    "127.0.0.1:19530?api_key=Xq7vKq",
    "films?token=Xq7vKq",
    "--store=postgresql://me:Xq7vKq@127.0.0.1/db",
]


def from_python(name):
    """What Python says to each of the doors that take a name."""
    doors = (
        open_store,
        existing_store,
        lambda name: open_store(name, "films"),
        lambda name: open_store(name, faiss="Flat"),
        lambda name: open_store(Path(name)),
        lambda name: BoolSearcher(index=name),
        lambda name: BoolSearcher(name),
        Index,
        FileStore,
        obey,
        OwnDocuments,
        lambda name: build_index(None, name, None),
    )
    for door in doors:
        try:
            door(name)
        except (BoolBertError, OSError) as error:
            yield str(error)
            yield repr(error)


def commands(name):
    yield from (["search", QUERY, flag, name] for flag in ("--store", "--index", "--model", "--stroe"))
    yield ["search", QUERY, name]
    yield ["search", QUERY, "--store", name, "--index", "films"]
    yield ["search", QUERY, f"--store={name}"]
    yield ["search", QUERY, "-k", name]
    yield [name, QUERY]
    yield ["explain", QUERY, "--store", name]
    yield ["index", "films.jsonl", "--store", name, "--collection", "films"]
    yield ["index", "films.jsonl", "--store", name, "--add"]
    yield ["index", "films.jsonl", "--output", name]
    yield ["index", name, "--output", "made"]
    yield ["index", name, "--calibrate"]
    yield ["index", "--store", name, "--table", "films", "--id", "id"]
    yield ["index", "--store", name, "--remove", "tt1"]
    yield ["eval", "films.jsonl", "--index", name]


def from_commands(name):
    """What the command line prints, and how it ends."""
    for words in commands(name):
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            try:
                status = main(words)
            except SystemExit as end:  # argparse
                status = end.code
        assert status == 2, (words, shown.getvalue())
        yield shown.getvalue()


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The working directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(main.__globals__, "build_parser", functools.cache(build_parser))  # which takes most of the time
        patch.chdir(tmp_path_factory.mktemp("here"))
        Path("films.jsonl").write_text('{"id": "tt1", "text": "A film about war."}\n')
        yield Path.cwd()


def check(name, folder):
    """Go through every door with an address that no database has."""
    shown = [shown_name(name), *from_python(name), *from_commands(name)]
    shown += [str(path.relative_to(folder)) for path in folder.rglob("*")]
    for text, piece in product(shown, PIECES):
        assert piece not in text
    assert [path.name for path in folder.iterdir()] == ["films.jsonl"]


@pytest.mark.parametrize("name", TYPED)
def test_no_password_is_printed_raised_or_written(name, here):
    check(name, here)


@pytest.mark.long
@fuzz
@given(addresses)
def test_no_password_of_any_address(here, name):
    check(name, here)


@pytest.mark.parametrize("kind", ["elasticsearch+http://", "opensearch+http://me@", "qdrant:http://", "http://"])
def test_a_key_with_a_line_break_is_not_sent_and_not_shown(kind):
    """As a header it would be quoted by whatever refuses it."""
    with pytest.raises(BoolBertError, match="holds a line break or a control character") as error:
        open_store(f"{kind}127.0.0.1:9", token="Xq7vKq\n").exists()
    assert "Xq7vKq" not in str(error.value)


def test_a_milvus_that_cannot_be_reached(capfd, caplog):
    """Its client and gRPC have logs of their own."""
    milvus = pytest.importorskip("boolbert.retrieval.stores.milvus_store")
    pytest.importorskip("pymilvus", reason="NOT TESTED: Milvus, pymilvus is not installed")
    with pytest.raises(BoolBertError, match=r"http://me@127\.0\.0\.1:9: cannot be reached") as error:
        milvus.MilvusStore("http://me:Xq7vKq@127.0.0.1:9", token="Zw9RpW", wait=0.3)
    shown = "".join([str(error.value), *capfd.readouterr(), caplog.text])
    assert "Xq7vKq" not in shown
    assert "Zw9RpW" not in shown
