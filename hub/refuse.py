"""What must not be published: pickles, secrets, the paths of a machine, code that is in no commit."""

import json
import re
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .assemble import CODE, ROOT, published_files

# Pickle protocols 2 to 5, and the zip that torch.save puts its pickle into.
PICKLE_STARTS = (*(bytes([0x80, protocol]) for protocol in range(2, 6)), b"PK\x03\x04")
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
SECRETS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}"
    r"|sk-[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{16}|xox[abp]-[\w-]{10,})|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
# A file's place on somebody's machine: nobody else has it, and it tells names.
ABSOLUTE = re.compile(
    r"(?<![\w.~:/\\-])(?:/(?:home|root|Users|mnt|media|tmp|var|opt|srv|scratch|work|workspace|data|private)/[\w.+-]+"
    r"|[A-Za-z]:\\{1,2}[\w.+-]+\\)"
)


def refusals(folder: Path, secrets: Iterable[str] = ()) -> list[str]:
    """One line for each reason not to publish the folder; `secrets` are strings that must occur nowhere."""
    found = []
    for file in published_files(folder):
        name = file.relative_to(folder).as_posix()
        if file.is_symlink():
            found.append(f"{name}: is a link; publish the file itself")
            continue
        with open(file, "rb") as handle:
            start = handle.read(8)
        if file.suffix in PICKLE_SUFFIXES or start.startswith(PICKLE_STARTS):
            found.append(f"{name}: is pickled, and runs code when it is loaded; save it as safetensors")
        else:
            found += [f"{name}{place}" for place in _places(file, tuple(filter(None, secrets)))]
    return found


def _places(file: Path, secrets: tuple[str, ...]) -> list[str]:
    if file.suffix == ".safetensors":
        text = _safetensors_metadata(file)
    else:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return [": is neither text nor safetensors"]
    return text_refusals(text, secrets)


def text_refusals(text: str, secrets: tuple[str, ...] = ()) -> list[str]:
    """What a text must not hold, with its line; a secret is never repeated.

    >>> text_refusals('{"a": 1,\\n "data": "/home/someone/data"}')
    [", line 2: holds the absolute path '/home/someone'"]
    >>> text_refusals("https://hf.co/data/x and/or ./tmp/x")
    []
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if SECRETS.search(line) or any(secret in line for secret in secrets):
            found.append(f", line {number}: holds what looks like a token or key")
        if path := ABSOLUTE.search(line):
            found.append(f", line {number}: holds the absolute path {path.group()!r}")
    return found


def _safetensors_metadata(file: Path) -> str:
    with open(file, "rb") as handle:
        (length,) = struct.unpack("<Q", handle.read(8))
        header = json.loads(handle.read(length))
    return json.dumps(header.get("__metadata__", {}))


def uncommitted(root: Path = ROOT) -> list[str]:
    """The published code files that differ from the checkout's last commit; none where there is no checkout."""
    if not (root / ".git").exists():
        return []
    try:
        command = ["git", "status", "--porcelain", "--", *CODE]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line[3:] for line in done.stdout.splitlines()]
