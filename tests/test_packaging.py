"""What is installed is what is here."""

from configparser import ConfigParser
from pathlib import Path

import boolbert

ROOT = Path(boolbert.__file__).parent


def read_setup():
    parser = ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg")
    return parser


def test_every_package_is_listed():
    """The root is the package, so setuptools cannot look for the others by itself."""
    folders = [path.parent.relative_to(ROOT) for path in ROOT.rglob("__init__.py")]
    here = {".".join(("boolbert", *folder.parts)) for folder in folders if not str(folder).startswith(".")}
    listed = set(read_setup()["options"]["packages"].split())
    assert listed == here | {"boolbert"}


def test_one_version():
    assert read_setup()["metadata"]["version"] == boolbert.__version__


def test_every_requirement_is_pinned_in_the_constraints():
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()}
    options = read_setup()
    wanted = options["options"]["install_requires"].splitlines()
    for name, extra in options["options.extras_require"].items():
        wanted += extra.splitlines() if name != "serve" else []  # gradio and the pinned pillow exclude each other
    names = {line.split(">=")[0].split("==")[0].strip().lower().replace("_", "-") for line in wanted if line.strip()}
    assert {name for name in names if not name.startswith("boolbert[")} <= pinned
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().split()


def test_no_file_is_named_like_a_library():
    """A script's own folder is on sys.path when it is launched."""
    libraries = {"datasets", "evaluate", "tokenizers", "transformers", "torch", "accelerate", "safetensors", "faiss"}
    for folder in ("train", "eval", "bench"):
        assert not libraries & {path.stem for path in (ROOT / folder).iterdir()}


def test_a_space_installs_what_the_page_needs():
    options = read_setup()
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = options["options"]["install_requires"].split() + options["options.extras_require"]["serve"].split()
    assert [line for line in lines if not line.startswith("#")] == wanted
