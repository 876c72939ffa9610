"""What tests make again and again from the same files or weights is made once: exported graphs, opened models and
programs, and that an exported graph computes what its model computes.

Each is known by the content that it is made from, so what a test has changed is made anew. Graphs are shared by all
processes of a run, the rest by the tests of one process.
"""

import copy
import hashlib
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import cache, lru_cache, partial, wraps
from pathlib import Path
from weakref import WeakKeyDictionary

LARGE = 1_000_000  # weights; copies of larger models share them
HASHED = 1_000_000  # bytes; a larger file is known by its place, size and time
KEPT = 48  # of each kind


@cache
def install():
    """Let this process remember, and those that are forked from it."""
    import torch

    from boolbert import sentence_boolbert
    from boolbert.retrieval import encoders, fingerprints, int8_encoder, models
    from boolbert.search import cached_model, export, query_encoder

    torch.onnx.export = partial(_export_or_copy, torch.onnx.export)
    _replace(query_encoder, "open_graph", _opened_once(query_encoder.open_graph, KEPT))
    _replace(int8_encoder, "open_program", _opened_once(int8_encoder.open_program, 16))
    _replace(export, "checked_encoder", _checked(export))
    _replace(cached_model, "_read", _read_once(cached_model))
    opened = Opened()
    _replace(sentence_boolbert, "load_dual_encoder", opened.remembered(sentence_boolbert.load_dual_encoder, str))
    _replace(models, "_plain", opened.remembered(models._plain, lambda encoder: encoder.path))
    _replace(models, "check_encodes", opened.once(models.check_encodes))
    _replace(models, "default_model", opened.default(models))
    _replace(encoders, "check_fit", _fits_once(encoders.check_fit))
    _replace(fingerprints, "model_fingerprint", opened.fingerprinted(fingerprints))
    int8_encoder.Int8Encoder.of = classmethod(opened.in_int8(int8_encoder))
    return opened


def _opened_once(open_session, count):
    """A program is opened once, where a test has not taken ONNX Runtime away."""
    remembered = lru_cache(maxsize=count)(open_session)
    return wraps(open_session)(lambda content: (remembered if _is_there("onnxruntime") else open_session)(content))


def _is_there(package):
    return sys.modules.get(package, "") is not None


def _replace(module, name, function):
    """Wherever it was imported to, too."""
    own = getattr(module, name)
    for user in list(sys.modules.values()):
        if vars(user).get(name) is own:
            setattr(user, name, function)


def content_of(folder):
    """A hash of a folder's files; None where there is no such folder."""
    folder, digest = Path(folder), hashlib.sha256()
    if not folder.is_dir():
        return None
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        status = file.stat()
        digest.update(f"{file.relative_to(folder)} {status.st_size} {status.st_mode} ".encode())
        if status.st_size > HASHED:
            digest.update(f"{file.resolve()} {status.st_mtime_ns} {status.st_ino}".encode())
        elif os.access(file, os.R_OK):
            digest.update(file.read_bytes())
    return digest.hexdigest()


# ---- models


class Opened:
    """Models by the content of their folders. Each caller has its own copy; those of large ones share their weights."""

    def __init__(self):
        self.models = {}  # key: a model that nobody has used
        self.keys = WeakKeyDictionary()  # copies that were given away
        self.right = set()  # keys of models that have encoded a text

    def remembered(self, load, folder_of):
        @wraps(load)
        def load_or_copy(given, device=None, **options):
            path = folder_of(given)
            key = load.__name__, content_of(path), str(device), repr(options)
            if key[1] is None:
                return load(given, device=device, **options)
            if not hasattr(given, "__fspath__") and not isinstance(given, str):
                key += (repr({**vars(given), "path": None, "note": None}),)
            return self.copy(key, path, partial(load, given, device=device, **options))

        return load_or_copy

    def copy(self, key, path, load):
        import torch

        if key not in self.models:
            state = torch.get_rng_state()  # a copy draws nothing
            model = load()
            torch.set_rng_state(state)
            if len(self.models) == KEPT:
                del self.models[next(iter(self.models))]
            tensors = [*model.parameters(), *model.buffers()]
            shared = tensors if sum(tensor.numel() for tensor in tensors) > LARGE else []
            self.models[key] = model, str(path), shared, _versions(shared)
        model, own_path, shared, _ = self.models[key]
        # deepcopy keeps what it finds in its second argument.
        found = copy.deepcopy(model, {id(tensor): tensor for tensor in shared})
        if own_path != str(path):
            _rename(found, own_path, str(path))
        self.keys[found] = key, _versions(found.parameters())
        return found

    def key_of(self, model):
        """The key of a copy whose weights are still those of its folder; else None."""
        key, versions = self.keys.get(model, (None, None))
        return key if key is not None and versions == _versions(model.parameters()) else None

    def once(self, check):
        """A check of an opened model, once for each content and precision."""

        @wraps(check)
        def check_once(model, name):
            key = self.key_of(model), model.dtype
            if key[0] is None or key not in self.right:
                check(model, name)
                self.right.add(key)

        return check_once

    def default(self, models):
        own, kept = models.default_model, {}

        @wraps(own)
        def default_model(device=None):
            from boolbert.retrieval.encoders import resolve_encoder

            path = resolve_encoder().path
            settings = (models.take_shipped,)
            key = "default", content_of(path), str(device), *map(str, settings)

            def load():
                kept[key] = own(device)
                return kept[key].encoder

            encoder = self.copy(key, path, load)
            about = kept[key]
            return models.SearchModel(about.name, encoder, about.note, about.trained, about.path)

        return default_model

    def fingerprinted(self, module):
        """`model_fingerprint`, which hashes the weights of a folder once for each of the settings."""
        own, known = module.model_fingerprint, {}

        @wraps(own)
        def model_fingerprint(model, task):
            key = self.key_of(model)
            if key is None:
                return own(model, task)
            parts = [
                [
                    *(type(part), getattr(part, "max_seq_length", None), module._configuration(part, False)),
                    *(part.get_config_dict() if hasattr(part, "get_config_dict") else None, module._tokenizer(part)),
                ]
                for part in module.side_modules(model, task)
            ]
            settings = repr((task, model.dtype, module.prompt_of(model, task), module.is_cosine(model), parts))
            key = key, hashlib.sha256(settings.encode()).digest()
            if key not in known:
                known[key] = own(model, task)
            return known[key]

        return model_fingerprint

    def in_int8(self, module):
        """`Int8Encoder.of`, which has written and compared the program of a model once."""
        own, known = module.Int8Encoder.of.__func__, {}
        parts = module.in_int8, module.program_of, module.open_program, module.Int8Encoder.__call__

        @wraps(own)
        def of(kind, model):
            key = self.key_of(model)
            now = module.in_int8, module.program_of, module.open_program, kind.__call__
            is_there = _is_there("onnx") and _is_there("onnxruntime")
            if key is None or now != parts or not is_there:  # a test has put another one there
                return own(kind, model)
            module.check_processor()
            key = key, model.dtype, model.device, module.side_modules(model, "document")[0].max_seq_length
            if key not in known:
                known[key] = own(kind, model)
            return known[key]

        return of

    def check_unchanged(self):
        """Raise where a test has changed weights that others use."""
        changed = [key for key, (*_, shared, versions) in self.models.items() if versions != _versions(shared)]
        for key in changed:
            del self.models[key]
        assert not changed, f"the test has changed the weights of models that other tests use: {changed}"


def _versions(tensors):
    """Changes with every change in place."""
    return [(tensor.data_ptr(), tensor._version) for tensor in tensors]


def _rename(model, old, new):
    """Where a model says which folder it comes from."""
    for module in model.modules():
        for holder, name in (
            (getattr(module, "config", None), "_name_or_path"),
            (getattr(module, "tokenizer", None), "name_or_path"),
            (module, "name_or_path"),
        ):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value.startswith(old):
                setattr(holder, name, new + value.removeprefix(old))


def _fits_once(check_fit):
    fitting = set()

    @wraps(check_fit)
    def check(folder, *more):
        key = content_of(folder), *more
        if key not in fitting:
            check_fit(folder, *more)
            fitting.add(key)

    return check


# ---- graphs


def _export_or_copy(export_graph, module, example, file, **options):
    folder = _graphs()
    stored = folder / key_of(module, example, options)
    if not stored.exists():
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            export_graph(module, example, Path(aside, "graph"), **options)
            Path(aside, "graph").rename(stored)
    shutil.copyfile(stored, file)


def key_of(module, example=(), options=None):
    """A hash of all that a graph is made from: the modules' structure, their settings and their weights."""
    import torch

    configs = {id(part.config): part.config for part in module.modules() if hasattr(part, "config")}.values()
    settings = [{**config.to_dict(), "_name_or_path": None} for config in configs]
    shapes = [(tensor.shape, tensor.dtype) for tensor in example]
    digest = hashlib.sha256(repr((module, settings, shapes, options)).encode())
    for tensor in module.state_dict().values():
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _checked(export):
    """`checked_encoder`, which compares a graph with a model once."""
    own, parts = export.checked_encoder, (export.open_graph, export.torch_encoder)

    @wraps(own)
    def checked_encoder(graph, encoder):
        if parts != (export.open_graph, export.torch_encoder):  # a test has put another one there
            return own(graph, encoder)
        key = hashlib.sha256(graph).hexdigest() + key_of(encoder)
        right = _graphs() / f"right-{hashlib.sha256(key.encode()).hexdigest()}"
        if right.exists():
            return export._with_tokenizer(export.open_graph(graph), encoder)
        found = own(graph, encoder)
        right.touch()
        return found

    return checked_encoder


def _read_once(cached_model):
    """`_read` of the default model, whose graph of 90 MB is read and hashed once while its files stay as they are."""
    own, kept = cached_model._read, {}

    @wraps(own)
    def read(name, note):
        folder = cached_model._folder(name)
        files = [folder, folder / cached_model.SETTINGS, folder / cached_model.GRAPH]
        if name is not None or not all(file.exists() for file in files):
            return own(name, note)
        stamps = [(str(file), *(file.lstat()[:2]), *(file.lstat()[4:7]), file.lstat().st_mtime_ns) for file in files]
        key = repr((stamps, cached_model._fingerprint(cached_model.default_folder() or folder), note))
        if key not in kept:
            found = own(name, note)
            kept.clear()
            kept[key] = found
        return replace(kept[key])  # another one, which has not opened its model

    return read


def _graphs():
    folder = Path(os.environ["BOOLBERT_TESTS"], "graphs")
    folder.mkdir(exist_ok=True)
    return folder
