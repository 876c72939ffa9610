"""`boolbert`: the parser, and how a command ends. What takes time to import is imported inside the commands."""

import argparse
import gc
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from boolbert import __version__
from boolbert.core.addresses import shown_name
from boolbert.core.arguments import Parser, add_document_flags
from boolbert.core.environment import keep_freed_memory, one_numpy_thread, prepare_training
from boolbert.core.errors import INTERRUPTED, BoolBertError, drop_output, one_line
from boolbert.core.progress import shown_step
from boolbert.core.terminal import use_any_encoding

from . import commands

EXAMPLES = """examples:
  boolbert search "landlocked countries in Africa that are not former British colonies"
  boolbert explain "island countries that are also monarchies" --html explain.html
  boolbert index my_documents.jsonl --output my_index
  boolbert search "films that are not westerns" --index my_index --operators not
  boolbert demo

training and comparison with labels are scripts of the repository: train/*.py for `accelerate launch`, eval/*.py
"""
MODEL = "folder or Hub id; without it the one the index was made with, else the default encoder upgraded to obey NOT"

# Words that begin with a minus sign and are no flag: "-hood", "-hood jackets".
_MINUS = re.compile(r"-(?!-|[a-z]\Z|k=|k?[\d.]+\Z).")

# When Python looks for cycles in the commands that people wait for. Imports make hundreds of thousands of objects that
# stay: by its own rule it searches them many times, a tenth of the time until torch is there, and once more at the end.
SELDOM = (100_000, 50, 100)

# Commands that are programs of their own: the module whose `main(words)`, or the named function, runs; what it does.
TOOLS = {
    ("data", "summary"): ("boolbert.data.summary", "rows, templates, operators, lengths, and all that is wrong"),
    ("data", "queries"): ("boolbert.data.own.show", "make Boolean queries from documents alone, and look at them"),
    ("data", "countries"): ("boolbert.data.embedded:write_countries", "write the embedded countries into a folder"),
    ("data", "denials"): ("boolbert.data.embedded:write_denials", "write documents that say what they lack"),
    ("eval",): ("boolbert.eval.own_queries", "measure an index on a few queries of your own"),
    ("upgrade",): ("boolbert.train.upgrade", "turn a sentence-transformers model into one that obeys NOT"),
    ("publish",): ("boolbert.hub_upload", "check a finished run and publish it on the Hugging Face Hub"),
    ("export",): ("boolbert.search.export", "export a run's query encoder to ONNX, and measure what was lost"),
}


def build_parser() -> argparse.ArgumentParser:
    text = "Dense retrieval that understands AND, OR and NOT."
    parser = _parser(Parser, text, EXAMPLES, prog="boolbert")
    parser.add_argument("--version", action="version", version=f"boolbert {__version__}")
    add = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_index(add)
    _add_search(add)
    _add_explain(add)
    _add_serve(add)
    _add_data(add)
    _add_demo(add)
    for words, (_, text) in TOOLS.items():
        if len(words) == 1:
            add.add_parser(words[0], help=text, add_help=False)
    return parser


def _add_index(add) -> None:
    text = "Encode documents into an index that `search` and `explain` can ask."
    examples = """examples:
  boolbert index recipes.csv --output my_index             # also .jsonl, .tsv, .parquet, a folder of .txt and .md
  boolbert index films.jsonl --title name --text plot --passages --output my_index
  boolbert index quest --output quest_index --model runs/quest
  boolbert index films.csv --store films.db                 # Milvus Lite; pip install 'boolbert[milvus]'
  boolbert index films.csv --store http://host:19530 --collection films
  boolbert index films.csv --store postgresql://host/db --collection films   # pip install 'boolbert[postgres]'
  boolbert index --store postgresql://host/db --collection films --table public.movies --id movie_id --text plot
  accelerate launch -m boolbert.cli index films.csv --output my_index   # several GPUs, each its own shards
  boolbert index my_index --store http://host:19530         # copy what is encoded already
  boolbert index more_recipes.csv --add --output my_index   # a document whose id is there already is replaced
  boolbert index --remove tt0080684 tt0078748 --output my_index
Title and text are encoded together; the first three documents are shown as they are understood.
A call that was cut off goes on where it was. The index remembers its model and the hash of its documents.
A store takes more documents at any time; those whose id it has are replaced. MILVUS_TOKEN is the token of a server.
"""
    command = _command(add, "index", text, examples, commands.index)
    flag = command.add_argument
    flag("documents", metavar="DOCS", nargs="?", help="a .jsonl, .csv, .tsv or .parquet file, a folder, or a Hub id")
    table = "instead of DOCS, your own table in the database of --store; it is read and never changed"
    flag("--table", metavar="NAME", help=table)
    flag("--output", metavar="DIR", help="the folder to write")
    _add_store(command)
    flag("--faiss", metavar="KIND", help="FAISS's index of a new NAME.faiss: HNSW32,Flat; exact without")
    flag("--add", action="store_true", help="to the index or store that is there")
    flag("--no-evidence", action="store_true", help="without the documents' clauses: smaller, faster, and less exact")
    flag("--float32", action="store_true", help="no int8, which makes encoding on many CPUs twice as fast")
    calibrate = "for `search --violations`; an index that is there: boolbert index my_index --calibrate"
    flag("--calibrate", action="store_true", help=calibrate)
    remove = "these documents from the index or store; titles where they have no ids"
    flag("--remove", "--delete", dest="delete", metavar="ID", nargs="+", help=remove)
    add_document_flags(command)
    _add_model(command)


def _add_search(add) -> None:
    text = "Find the documents that answer a query."
    examples = """examples:
  boolbert search "landlocked countries in Africa that are not former British colonies"
  boolbert search "monarchies or island countries" -k 5 --json
  boolbert search "films that are not westerns" --index my_index --operators not
  boolbert search "island monarchies" --operators none       # every gate off: plain BERT
  boolbert search "films that are not westerns" --index my_index --not-weight 0.8
  boolbert search "snack bars without nuts" --index my_index --violations 0.05 --unsure    # at most 5% have nuts
  boolbert search "films that are not westerns" --store films.db --where "year > 1990 and country in (France, Italy)"
  boolbert search --queries queries.jsonl --index my_index --json > answers.jsonl     # many, one line for each
"""
    command = _command(add, "search", text, examples, commands.search)
    query = _add_query(command)
    flag = command.add_argument
    queries = 'instead of QUERY, many: lines such as {"query": "quiet hotels"}; with --json, one line of JSON for each'
    flag("--queries", metavar="FILE", action=_Instead, other=query, help=queries)
    flag("--no-evidence", action="store_true", help="rank by the documents' vectors alone, not by what they say")
    read = "how many of the best documents are read, sentence by sentence; 0 is faster and less exact (default 20)"
    flag("--read", type=int, metavar="N", help=read)
    flag("--unsure", action="store_true", help="list what --violations or a typed -word has left out as well")
    flag("--where", metavar="FILTER", help='a filter on the documents\' fields: "year > 1990"')
    flag(
        "--no-numbers",
        action="store_true",
        help='"under 20 minutes" and "since June 2023" are searched as words, and filter no field',
    )
    _add_model(command)


def _add_explain(add) -> None:
    text = "Show what Bool-BERT makes of a query: what it excludes, and how that moves the results."
    examples = """examples:
  boolbert explain "landlocked countries in Africa that are not former British colonies"
  boolbert explain "monarchies or island countries" --html explain.html --png explain.png
  boolbert explain "countries in Asia but not islands" --baseline runs/demo/bert   # against that run, not gates off
"""
    command = _command(add, "explain", text, examples, commands.explain)
    _add_query(command)
    flag = command.add_argument
    flag("--html", metavar="FILE", help="write a page that stands alone")
    flag("--png", metavar="FILE", help="write a picture: how the query was read, and both rankings")
    flag("--baseline", metavar="DIR", help="a plain model to compare with, instead of the same one with its gates off")
    _add_model(command)


def _add_serve(add) -> None:
    text = "Open a page in the browser: search, see how a query is read, click words into or out of NOT."
    examples = """examples:
  boolbert serve                                   # the embedded countries, on http://127.0.0.1:7860
  boolbert serve --index my_index --example "films that are not westerns"
  boolbert serve --host 0.0.0.0 --port 8080        # for everyone on the network
"""
    command = _command(add, "serve", text, examples, commands.serve)
    _add_index_name(command)
    flag = command.add_argument
    flag("--baseline", metavar="DIR", help="a plain model for the left side, instead of the same one")
    flag("--example", action="append", metavar="QUERY", help="a query to offer; may be given again")
    flag("--host", metavar="ADDRESS", help="address to listen on; this machine alone if not given")
    flag("--port", type=int, metavar="N", help="7860, or the next free one, if not given")
    flag("--rate", type=int, default=120, metavar="N", help="searches a minute of one address (%(default)s)")
    proxy = "the proxy in front of it, whose X-Forwarded-For tells the address for --rate; no one's if not given"
    flag("--trusted-proxy", metavar="ADDRESS", help=proxy)
    allowed = "another name by which the page is asked, such as a proxy's; may be given again; '*' for any"
    flag("--allowed-host", metavar="NAME", action="append", default=[], help=allowed)
    _add_model(command, json=False)


def _add_data(add) -> None:
    text = "Look into data sets, and make them."
    examples = """examples:
  boolbert data summary                 # the embedded countries and sentences
  boolbert data summary path/to/quest --json
  boolbert data queries recipes.csv --show 20
`boolbert data COMMAND --help` tells more.
"""
    command = _parser(add.add_parser, text, examples, "data", help=text.rstrip("."))
    tools = command.add_subparsers(dest="tool", metavar="COMMAND", required=True)
    for words, (_, line) in TOOLS.items():
        if words[0] == "data":
            tools.add_parser(words[1], help=line, add_help=False)


def _add_demo(add) -> None:
    text = "Train Bool-BERT and its baseline on the embedded countries in minutes, and show what came out."
    examples = """examples:
  boolbert demo
  boolbert demo --fresh                 # train again, although there are finished runs
"""
    command = _command(add, "demo", text, examples, commands.demo)
    command.add_argument("--output", metavar="DIR", help="folder for runs and report; runs/demo if not given")
    command.add_argument("--fresh", action="store_true", help="start over instead of reusing finished runs")
    command.add_argument("--quick", action="store_true", help="a tiny random model, in seconds: shows that all works")


class _Instead(argparse.Action):
    """A flag with which a word need not be given."""

    def __init__(self, *names: Any, other: argparse.Action, **options: Any):
        super().__init__(*names, **options)
        self.other = other

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values)
        self.other.required = False


def _add_query(command: argparse.ArgumentParser) -> argparse.Action:
    flag = command.add_argument
    query = flag("query", metavar="QUERY")
    _add_index_name(command)
    flag("-k", type=int, default=10, help="how many results (%(default)s)")
    flag("--operators", metavar="LIST", help="such as and,not; or none. The model decides if not given")
    weight = "how strongly NOT excludes: 0 not at all, 1 strongly; the model's own strength if not given"
    flag("--not-weight", type=float, metavar="L", help=weight)
    kind = "what NOT excludes; of a property of the answer texts may speak. The query's words tell if not given"
    flag("--not", dest="not_kind", choices=("topic", "set", "property"), help=kind)
    violations = (
        "leave out documents so that at most this share of the results should have what NOT excludes: 0.01, 0.02, "
        "0.05, 0.1 or 0.2; needs `boolbert index --calibrate`"
    )
    flag("--violations", type=float, metavar="SHARE", help=violations)
    return query


def _add_index_name(command: argparse.ArgumentParser) -> None:
    index = "a folder of `boolbert index`; the embedded countries if not given"
    command.add_argument("--index", metavar="DIR", help=index)
    _add_store(command)


def _add_store(command: argparse.ArgumentParser) -> None:
    store = (
        "postgresql://host/db, NAME.db or http://host:19530 (Milvus), qdrant:http://host:6333, "
        "elasticsearch+https://host:9200, opensearch+https://host:9200, NAME.faiss, or a folder"
    )
    command.add_argument("--store", metavar="NAME", help=store)
    command.add_argument("--collection", metavar="NAME", help="in a database; documents if not given")


def _add_model(command: argparse.ArgumentParser, *, json: bool = True) -> None:
    command.add_argument("--model", metavar="DIR", help=MODEL)
    command.add_argument("--device", help="cpu, cuda, ...; the best there is if not given")
    if json:
        command.add_argument("--json", action="store_true", help="print JSON, and nothing else on standard output")


def _command(add, name: str, text: str, examples: str, run) -> argparse.ArgumentParser:
    command = _parser(add.add_parser, text, examples, name, help=text.split(":")[0].rstrip("."))
    command.set_defaults(run=run)
    return command


def _parser(make, text: str, examples: str, *names, **options) -> argparse.ArgumentParser:
    kind = argparse.RawDescriptionHelpFormatter
    return make(*names, description=text, epilog=examples, formatter_class=kind, allow_abbrev=False, **options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. 0: done; 1: done, and something is wrong with the data; 2: could not, with one line on why."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    is_process = arguments is None
    use_any_encoding()
    if is_process:
        prepare_training() if words[:1] == ["upgrade"] else keep_freed_memory()
        if words[:1] == ["demo"]:
            one_numpy_thread()
        if words[:1] in (["search"], ["explain"], ["index"]):
            gc.set_threshold(*SELDOM)
    try:
        try:
            status = _run(words)
        except SystemExit:  # after help
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # `boolbert search ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (BoolBertError, OSError) as error:  # a user's mistake; a bug keeps its traceback
        if os.environ.get("BOOLBERT_DEBUG"):
            raise
        print(f"boolbert: error: {one_line(drop_output(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if is_process:
            gc.freeze()  # no search for cycles in a process that ends


def _run(words: Sequence[str]) -> int:
    for length in (1, 2):
        if (name := tuple(words[:length])) in TOOLS:
            module, _, function = TOOLS[name][0].partition(":")
            is_slow = name == ("upgrade",) and not {"-h", "--help"} & set(words)
            with shown_step("importing torch", shown=is_slow):
                imported = import_module(module)
            return getattr(imported, function or "main")(list(words[length:])) or 0
    parser = build_parser()
    options, unknown = parser.parse_known_args(_query_last(words))
    if unknown:
        _check_quotes(options, unknown)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.run(options)
    return 0


def _query_last(words: Sequence[str]) -> list[str]:
    """The words with those that a query excludes behind all flags: argparse takes "-hood jackets" for -h.

    >>> _query_last(["search", "-hood jackets", "-k", "5"]), _query_last(["search", "a", "--not-weight", "-0.5"])
    (['search', '-k', '5', '--', '-hood jackets'], ['search', 'a', '--not-weight', '-0.5'])
    """
    is_query = words[:1] in (["search"], ["explain"]) and "--" not in words
    excluding = [word for word in words if is_query and _MINUS.match(word)]
    return [*(word for word in words if word not in excluding), *(["--", *excluding] if excluding else [])]


def _check_quotes(options: argparse.Namespace, unknown: Sequence[str]) -> None:
    """Raise where the shell has taken a query apart: boolbert search islands not monarchies."""
    words = [word for word in unknown if word != "--"]
    if hasattr(options, "query") and all(_MINUS.match(word) or not word.startswith("-") for word in words):
        query = " ".join(map(shown_name, [options.query, *words]))
        raise BoolBertError(f'put the query in quotes, it is one argument: boolbert {options.command} "{query}"')
