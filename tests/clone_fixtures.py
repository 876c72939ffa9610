"""A copy of what git knows of this repository."""

import shutil
import subprocess
from pathlib import Path

import pytest

import boolbert

ROOT = Path(boolbert.__file__).parent


def copied(folder, tested):
    """Copy the files that git knows into a folder. tested: what is not tested where this is no clone."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip(f"NOT TESTED: {tested}, because this is no clone")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder
