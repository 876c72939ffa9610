"""What the commands do. Each imports what it needs when it runs, so that help is there at once."""

import os
import re
import sys
from argparse import Namespace
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from boolbert.core.addresses import shown_name
from boolbert.core.errors import BoolBertError, cut, error_at, optional, shorten
from boolbert.core.files import check_file, check_folder
from boolbert.core.terminal import print_json, printable
from boolbert.retrieval.store_names import ELASTICSEARCH, OPENSEARCH, POSTGRES, QDRANT, check_folder_name

SHOWN_IDS = 5  # of ids that no document has
NO_EVIDENCE = (
    "note: ranked by the documents' vectors alone; for what they say, clause by clause, index them again into a new "
    "folder or store"
)
# The variable that holds the key, the token or the password of a store's server, by how its address begins.
SECRETS = {
    QDRANT: "QDRANT_API_KEY",
    ELASTICSEARCH: "ELASTICSEARCH_API_KEY",
    OPENSEARCH: "OPENSEARCH_PASSWORD",
    ("",): "MILVUS_TOKEN",
}


def index(options: Namespace) -> None:
    from boolbert.core.progress import shown_step
    from boolbert.data.own import NoDocuments, documents_of
    from boolbert.retrieval.encode import processes
    from boolbert.search import build_index, load_model
    from boolbert.search.opening import is_store, model_of

    if options.calibrate and not (options.output or options.store or options.delete):
        if not options.documents or not (is_store(options.documents) or _is_index(options.documents)):
            raise BoolBertError(
                "--calibrate needs the documents with --output DIR or --store NAME, or an index to calibrate"
            )
        _calibrate(options, options.documents)
        return
    if options.output and (options.add or options.delete):  # a folder of an index is a store as well
        options.store, options.output = options.output, None
    _check_index(options)
    state = processes()
    if options.store and state.num_processes > 1:
        raise BoolBertError(
            "several processes write an index: give --output DIR; then `boolbert index DIR --store NAME` copies it"
        )
    store = _store(options, exists=bool(options.add or options.delete))
    if options.add and not store.exists():
        raise BoolBertError(f"--add: {shown_name(options.store)} holds no index yet; leave --add out")
    if store is not None and options.delete:
        gone = store.delete(options.delete)
        count, known = len(gone), {*gone, *gone.values()}
        unknown = [id for id in options.delete if id not in known]
        if unknown:
            shown = ", ".join(unknown[:SHOWN_IDS]) + (", ..." if len(unknown) > SHOWN_IDS else "")
            _say(f"note: no document there has {len(unknown):,} of the {len(options.delete):,} ids: {shown}")
        if options.calibrate:
            _calibrate(options, store)
        _done(options, {"deleted": count, **store.describe()}, f"{store.name}: {count:,} records deleted")
        return
    if store is not None and options.documents and _is_index(options.documents):
        _copy_into(store, options)
        return
    table = _table(options)
    if store is not None and table is None and store.exists():
        about = store.about()
        made = {} if about.table else about.columns  # what was said then holds for what is added
        options.id, options.atoms = options.id or made.get("id"), options.atoms or made.get("atoms")
    try:
        documents = documents_of(options, table)  # before a model is loaded, so that a wrong name is reported at once
        _say(documents.preview())
    except NoDocuments:
        if table is None or not store.exists() or store.about().table != table.table:
            raise
        _remove_all(store, options, table.table)
        return
    model = _without_torch(options) if store is None and state.num_processes == 1 else None
    if model is None:
        has_model = store is not None and options.model is None and store.exists()
        with shown_step("opening the model"):
            model = model_of(store, options.device) if has_model else load_model(options.model, device=options.device)
    _say(model.note)
    if store is not None:
        _index_into(store, documents, model, options, "" if table is None else table.table)
        return
    built = build_index(documents, options.output, model, evidence=not options.no_evidence, float32=options.float32)
    if not state.is_main_process:
        return
    _say_notes(documents)
    if options.calibrate:
        _calibrate(options, built)
    held = built.evidence
    evidence = None if held is None else {"clauses": held.manifest["clauses"], "bytes": held.size}
    ready = f"{len(built):,} documents{_size_line(evidence)}, ready for: boolbert search QUERY --index {built.folder}"
    _done(options, {"folder": str(built.folder), **built.manifest, "evidence": evidence}, f"{built.folder}: {ready}")


def _without_torch(options: Namespace) -> Any:
    """The default model for a folder of documents that are encoded in int8 on a CPU; None where that is not asked for,
    or cannot be done."""
    from boolbert.retrieval.index import VECTORS
    from boolbert.retrieval.shards import FLOAT32, precision_of
    from boolbert.search.default_program import default_documents

    is_other = options.model or options.float32 or options.device not in (None, "cpu")
    if is_other or precision_of(Path(options.output, VECTORS)) == FLOAT32:
        return None
    with suppress(Exception):  # whatever is missing, the model itself can be opened, or says what is wrong
        return default_documents()
    return None


def _calibrate(options: Namespace, name: Any) -> None:
    """Calibrate an index or a store that is there, and say for what."""
    from boolbert.core.progress import shown_step

    with shown_step("calibrate: opening the index and its model"):
        from boolbert.search import BoolSearcher
        from boolbert.search.calibrating import calibrate

        searcher = BoolSearcher(options.model, name, device=options.device)
    line = calibrate(searcher)
    promises = [f"{promise:.0%}" for promise in line.promises]
    kept = f"can promise at most {', '.join(promises)}" if promises else "nothing can be promised for these documents"
    _say(f"calibrated on {line.exclusions:,} exclusions made from the documents: search --violations {kept}")


def _check_index(options: Namespace) -> None:
    if bool(options.output) == bool(options.store):
        raise BoolBertError("give --output DIR for an index, or --store NAME for a vector store")
    if options.output:
        check_folder_name(options.output)
        check_folder(options.output)
    if options.add and options.delete:
        raise BoolBertError("give --add with documents, or --remove with ids")
    if options.table and not (options.store or "").startswith(POSTGRES):
        raise BoolBertError("--table is a table of a Postgres database: give --store postgresql://host/db")
    if options.table and (options.documents or options.delete):
        raise BoolBertError("give --table, or the documents to index, or --remove with ids")
    if bool(options.delete) == bool(options.documents or options.table):
        raise BoolBertError("give the documents to index, or --remove with ids")


def _table(options: Namespace) -> Any:
    """The user's table whose rows are the documents, if one is named."""
    if not options.table:
        return None
    from boolbert.retrieval.stores.postgres_table import PostgresTable

    columns = {name: getattr(options, name) for name in ("id", "text", "title", "atoms")}
    return PostgresTable(options.store, options.table, columns)


def _remove_all(store: Any, options: Namespace, table: str) -> None:
    """What a collection has of a table that has become empty."""
    gone = store.delete(list(store.ids()))
    store.note(replace(store.about(), complete=True))
    _say(f"note: {table} has no documents any more: {len(gone):,} records removed")
    evidence = {"clauses": 0, "bytes": 0} if store.about().evidence else None
    _done(options, {**store.describe(), "encoded": 0, "evidence": evidence}, f"{store.name}: 0 documents")


def _index_into(store: Any, documents: Any, model: Any, options: Namespace, table: str) -> None:
    from boolbert.retrieval.stores import index_documents

    settings = {"evidence": not options.no_evidence, "float32": options.float32}
    written = index_documents(documents, store, model, table=table, **settings)
    _say_notes(documents)
    if table and written.deleted:
        _say(f"note: {written.deleted:,} records removed that {table} no longer has")
    if not (options.no_evidence or store.about().evidence):
        _say(f"note: {store.name} was made without evidence; index all its documents into a new store to have it")
    if written.repeated:
        _say(f"note: {written.repeated:,} ids come more than once; the last document of each counts")
    if options.calibrate:
        _calibrate(options, store)
    count = store.count()
    flags = f"--store {shown_name(options.store)}{f' --collection {options.collection}' if options.collection else ''}"
    evidence = {"clauses": written.clauses, "bytes": written.evidence_bytes} if store.about().evidence else None
    encoded = f"{count:,} documents ({written.encoded:,} encoded now){_size_line(evidence)}"
    ready = f"{encoded}, ready for: boolbert search QUERY {flags}"
    _done(options, {**store.describe(), "encoded": written.encoded, "evidence": evidence}, f"{store.name}: {ready}")


def _size_line(evidence: dict[str, int] | None) -> str:
    return f" with evidence ({evidence['clauses']:,} clauses, {evidence['bytes'] / 1e6:,.1f} MB)" if evidence else ""


def _is_index(name: str) -> bool:
    from boolbert.retrieval.stores import FileStore

    return Path(name).is_dir() and FileStore(name).exists()


def _copy_into(store: Any, options: Namespace) -> None:
    from boolbert.retrieval.stores import FileStore, copy_documents

    copied = copy_documents(FileStore(options.documents), store, evidence=not options.no_evidence).documents
    if options.calibrate:
        _calibrate(options, store)
    line = f"{store.name}: {store.count():,} documents, {copied:,} of them as {options.documents} has encoded them"
    _done(options, {**store.describe(), "copied": copied}, line)


def _say_notes(documents: Any) -> None:
    for note in documents.report.lines(documents.passages):
        _say(f"note: {note}")


def _done(options: Namespace, content: dict[str, Any], line: str) -> None:
    if options.json:
        print_json(content)
    else:
        print(printable(line))


def _store(options: Namespace, *, exists: bool) -> Any:
    """The store that is named, if one is. exists: whether it has to be there."""
    if not options.store:
        if options.collection:
            raise BoolBertError("--collection needs --store http://host:19530, or another database")
        return None
    from boolbert.retrieval.stores import existing_store, open_store

    token = next((os.environ.get(name) for start, name in SECRETS.items() if options.store.startswith(start)), None)
    if exists:
        return existing_store(options.store, options.collection, token=token)
    return open_store(options.store, options.collection, token=token, faiss=getattr(options, "faiss", None))


def search(options: Namespace) -> None:
    from .show import show_answer

    operators = parse_operators(options.operators)
    if options.queries is not None:
        _search_many(options, operators)
        return
    _check_query(options)

    from boolbert.boolean.query import CUT
    from boolbert.search.cached_model import cache_model

    searcher = _open_searcher(options, cached=True)
    answer = searcher.search(options.query, options.k, operators, **_how_to_search(options, searcher))
    if options.unsure and options.violations is None and not answer.reading.typed:
        raise BoolBertError("--unsure lists what --violations or a typed -word leaves out; give one of them")
    if answer.reading.truncated:
        _say(f"note: {CUT}")
    for note in answer.notes:
        _say(f"note: {note}")
    if options.json:
        print_json({"model": searcher.model.name, **answer.as_json()})
    else:
        print(show_answer(answer, unsure=options.unsure), flush=True)
    cache_model(searcher.model)


def _search_many(options: Namespace, operators: list[str] | None) -> None:
    """Answer the queries of a file, each with a line of JSON. All lines are looked at first."""
    from boolbert.data.rows import json_rows
    from boolbert.search.cached_model import cache_model
    from boolbert.search.query_reader import check_query

    if options.query is not None:
        raise BoolBertError("give a query or --queries, not both")
    if not options.json:
        raise BoolBertError("--queries prints a line of JSON for each query; add --json")
    if options.unsure:
        raise BoolBertError("--unsure is for one query: with --queries, each line of JSON has what was left out")
    _check_k(options)
    asked = [(row.where, row.text("query", empty=True)) for row in json_rows(Path(options.queries), progress=False)]
    for where, query in asked:
        with error_at(where):
            check_query(query)
    searcher = _open_searcher(options, cached=True)
    how = _how_to_search(options, searcher)
    answers = searcher.answers([query for _, query in asked], options.k, operators=operators, **how)
    for where, _ in asked:
        with error_at(where):
            answer = next(answers)
        print_json({"model": searcher.model.name, **answer.as_json()}, indent=None)
    cache_model(searcher.model)


def _how_to_search(options: Namespace, searcher: Any) -> dict[str, Any]:
    """The settings of `BoolSearcher.search` that flags have."""
    how = {"where": options.where, "evidence": not options.no_evidence, "numbers": not options.no_numbers}
    if options.read is not None:
        how["read"] = options.read
    if not (options.no_evidence or searcher.has_evidence):
        _say(NO_EVIDENCE)
    return {**how, **_limits(options)}


def explain(options: Namespace) -> None:
    from .show import show_explanation

    operators = parse_operators(options.operators)
    for name in filter(None, (options.html, options.png)):
        check_file(name)
    _check_query(options)
    searcher = _open_searcher(options, cached=True)
    baseline = _baseline(options, searcher)

    from boolbert.core.files import write_text
    from boolbert.search import explain as explain_query

    explanation = explain_query(searcher, options.query, options.k, operators, baseline=baseline, **_limits(options))
    if options.html:
        write_text(options.html, explanation.page())
    if options.png:
        from boolbert.search.picture import write_picture

        write_picture(explanation, options.png)
    if options.json:
        print_json({"model": searcher.model.name, **explanation.as_json()})
    else:
        print(show_explanation(explanation))
        for name in filter(None, (options.html, options.png)):
            print(f"written: {printable(name)}")


def serve(options: Namespace) -> None:
    if options.rate < 1:
        raise BoolBertError(f"--rate must be at least 1, got {options.rate}")
    if options.port is not None and not 1 <= options.port <= 65535:
        raise BoolBertError(f"--port must be a number from 1 to 65535, got {options.port}")
    if options.trusted_proxy is not None:
        _check_addresses(options.trusted_proxy)
    for name in options.allowed_host:
        if name != "*" and not re.fullmatch(r"[\w-]+(?:\.[\w-]+)*", name):
            raise BoolBertError(f"--allowed-host must be a name such as films.example.org, got {shorten(name)}")
    optional("gradio", "gradio", "serve")

    from boolbert.serve.engine import Engine
    from boolbert.serve.page import EXAMPLES
    from boolbert.serve.page import serve as open_page

    def open_searchers() -> tuple[Any, Any]:
        searcher = _open_searcher(options)
        with suppress(BoolBertError):  # a GPU, or it is not installed: torch computes the queries then
            searcher.use_onnx()
        return searcher, _baseline(options, searcher)

    engine = Engine(open_searchers, rate=options.rate)
    try:
        engine.open()
    except (BoolBertError, OSError) as error:  # the page says it too, and looks again on every search
        _say(f"boolbert: error: {error}")
    examples = options.example or (() if options.index or options.store else EXAMPLES)
    reached = {"trusted_proxy": options.trusted_proxy, "allowed_hosts": options.allowed_host}
    open_page(engine, examples, host=options.host, port=options.port, **reached)


def _check_addresses(text: str) -> None:
    from ipaddress import ip_network

    for part in text.split(","):
        try:
            ip_network(part.strip(), strict=False)
        except ValueError:
            raise BoolBertError(
                f"--trusted-proxy must be an address such as 10.0.0.7, or a network such as 10.0.0.0/8; got {text!r}"
            ) from None


def demo(options: Namespace) -> None:
    from .demo import run_demo

    run_demo(check_folder(options.output) if options.output else None, fresh=options.fresh, quick=options.quick)


def parse_operators(text: str | None) -> list[str] | None:
    """
    >>> parse_operators("and, NOT"), parse_operators("none"), parse_operators(None)
    (['and', 'not'], [], None)
    """
    from boolbert.boolean import OPERATORS

    if text is None:
        return None
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return []
    if not names or not set(names) <= set(OPERATORS):
        raise BoolBertError(f"--operators must be a list out of {','.join(OPERATORS)}, or none; got {text!r}")
    return names


def _limits(options: Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("not_weight", "not_kind", "violations")}


def _open_searcher(options: Namespace, *, cached: bool = False) -> Any:
    """cached: one whose model need not be opened, where there is one; it answers at once."""
    from boolbert.search.searcher import BoolSearcher, cached_searcher

    if options.index and options.store:
        raise BoolBertError("give --index or --store, not both")
    store = _store(options, exists=True)
    documents = options.index if store is None else store
    searcher = cached_searcher(options.model, documents, options.device) if cached else None
    if searcher is None:
        searcher = BoolSearcher(options.model, documents, device=options.device)
    _say(searcher.model.note)
    if store is not None and not store.about().complete:
        _say(f"note: indexing into {shown_name(options.store)} has not finished; run it again, it goes on where it was")
    return searcher


def _baseline(options: Namespace, searcher: Any) -> Any:
    """The plain model to compare with, over the same documents; None for the same model with its gates off."""
    if options.baseline is None:
        return None
    from boolbert.search import BoolSearcher, load_model

    plain = load_model(options.baseline, device=options.device)
    same = options.index or options.store or searcher.index.fits(plain)
    return BoolSearcher(plain, searcher.index if same else None, device=options.device)


def _check_k(options: Namespace) -> None:
    if options.k < 1:
        raise BoolBertError(f"-k must be at least 1, got {options.k}")


def _check_query(options: Namespace) -> None:
    _check_k(options)
    if not options.query.strip():
        raise BoolBertError("the query is empty; give some words to search for")


def _say(line: str) -> None:
    """For people, beside the results: standard error."""
    for part in line.split("\n"):
        print(cut(printable(part)), file=sys.stderr)
