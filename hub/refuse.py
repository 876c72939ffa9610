"""What must not be published: pickles, links, secrets, the paths of a machine, code that is in no commit."""

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ..core.errors import HubError
from .assemble import CODE, ROOT, published_files
from .secret_patterns import PATTERNS, secret_in

# Pickle protocols 2 to 5, and the zip that torch.save puts its pickle into.
PICKLE_STARTS = (*(bytes([0x80, protocol]) for protocol in range(2, 6)), b"PK\x03\x04")
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
# A path on the publisher's machine: of no use to others, and it may hold names. Any /folder/file counts, also
# ~/file, file:///folder, C:\folder and \\server\folder; not the path of a web address, "and/or" or "./folder/file".
MACHINE_PATH = re.compile(
    r"(?<![\w.~:/\\<-])/[A-Za-z_][\w.+-]*/[\w.+-]+"
    r"|(?<![\w/])~[\w-]*/[\w.+-]+"
    r"|\b(?:file|dbfs):/+[\w.%+-]+"
    r"|(?<!\w)[A-Za-z]:(?:\\{1,2}|/)[\w.+-]+(?:\\{1,2}|/)"
    r"|(?<!\\)\\{4}[\w.-]+\\{2}\w+"
)


LOOKED_FOR = (
    f"Looked for pickles, links, paths of a machine, your Hub token, and tokens, keys or passwords of these kinds: "
    f"{'; '.join(PATTERNS)}. None was found; what looks otherwise is not recognised."
)


def refusals(folder: Path, secrets: Iterable[str] = ()) -> list[str]:
    """One line for each reason not to publish the folder; `secrets` are strings that must occur nowhere."""
    known = tuple(filter(None, secrets))
    found = []
    for file in published_files(folder):
        name = file.relative_to(folder).as_posix()
        if file.is_symlink():
            found.append(f"{name}: is a link; publish the file itself")
        elif not file.is_file():
            found.append(f"{name}: is not a file")
        else:
            found += [f"{name}{problem}" for problem in _file_refusals(file, known)]
        if text_refusals(name, known):
            found.append("the name of a file holds what looks like a token or key")
    return found


def _file_refusals(file: Path, secrets: tuple[str, ...]) -> list[str]:
    with open(file, "rb") as handle:
        start = handle.read(8)
    if file.suffix in PICKLE_SUFFIXES or start.startswith(PICKLE_STARTS):
        return [": is pickled, and runs code when it is loaded; save it as safetensors"]
    if file.suffix == ".safetensors":
        try:
            with safe_open(file, framework="np") as weights:
                notes = weights.metadata() or {}
                header = [*weights.keys(), *notes, *notes.values(), *(f"{name}={notes[name]}" for name in notes)]
        except SafetensorError as error:
            return [f": is not a whole safetensors file: {error}"]
        return text_refusals(" ".join(" ".join(header).split()), secrets)  # all of it is one line
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return [": is neither text nor safetensors"]
    found = text_refusals(text, secrets)
    return _hidden_refusals(text, secrets) if file.suffix == ".json" and not found else found


def _hidden_refusals(text: str, secrets: tuple[str, ...]) -> list[str]:
    r"""What JSON's escapes hide from a search of the text: "\/home\/someone" is "/home/someone".

    >>> _hidden_refusals('{"data": "\\/home\\/someone"}', ())
    [", line 1: holds the path of a machine, '/home/someone'"]
    """
    try:
        return text_refusals(json.dumps(json.loads(text), ensure_ascii=False), secrets)
    except (ValueError, RecursionError):
        return [": is not valid JSON"]


def text_refusals(text: str, secrets: tuple[str, ...] = ()) -> list[str]:
    """What a text must not hold, with its line; a secret is never repeated.

    >>> text_refusals('{"a": 1,\\n "data": "/home/someone/data"}')
    [", line 2: holds the path of a machine, '/home/someone'"]
    >>> text_refusals("https://hf.co/data/x and/or ./tmp/x")
    []
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if any(secret in line for secret in secrets):
            found.append(f", line {number}: holds what looks like a token or key (your own)")
        elif whose := secret_in(line):
            found.append(f", line {number}: holds what looks like a token or key ({whose})")
        elif path := MACHINE_PATH.search(line):
            found.append(f", line {number}: holds the path of a machine, {path.group()!r}")
    return found


def uncommitted(root: Path = ROOT, code: Sequence[str] = CODE) -> list[str]:
    """The published code files that differ from the checkout's last commit; none where there is no checkout."""
    if not (root / ".git").exists():
        return []
    try:
        command = ["git", "status", "--porcelain", "--", *code]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[0]
        raise HubError(f"{root}: git cannot say whether the code is committed: {reason}; see --allow-dirty") from None
    return [line[3:] for line in done.stdout.splitlines()]
