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
    for extra in options["options.extras_require"].values():
        wanted += extra.splitlines()
    names = {line.split(">=")[0].split("==")[0].strip().lower().replace("_", "-") for line in wanted if line.strip()}
    assert {name for name in names if not name.startswith("boolbert[")} <= pinned
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().split()


def test_no_file_is_named_like_a_library():
    """A script's own folder is on sys.path when it is launched."""
    libraries = {"datasets", "evaluate", "tokenizers", "transformers", "torch", "accelerate", "safetensors", "faiss"}
    for folder in ("train", "eval", "bench"):
        assert not libraries & {path.stem for path in (ROOT / folder).iterdir()}
