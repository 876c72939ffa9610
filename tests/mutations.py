"""Put faults into a copy of the code, one at a time, and see that a test notices each: tests/mutations.md names them.

python tests/mutations.py              # all; some minutes
python tests/mutations.py scoring hub  # those whose file or test has one of these words in its name
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FAULT = re.compile(
    r"^- `(?P<file>\S+)`: (?P<what>.+)\n  noticed by `(?P<test>\S+)`\n  ```diff\n(?P<diff>(?:  .*\n)+?)  ```$",
    re.MULTILINE,
)


class Mutation(NamedTuple):
    """A fault: in this file, the lines `before` become `after`."""

    file: str
    what: str
    test: str
    before: str
    after: str


def read_mutations(text: str) -> list[Mutation]:
    found = []
    for match in FAULT.finditer(text):
        lines = [line[2:] for line in match["diff"].splitlines()]
        before, after = ("".join(f"{line[1:]}\n" for line in lines if line[0] in kept) for kept in (" -", " +"))
        found.append(Mutation(match["file"], match["what"], match["test"], before, after))
    return found


def copy_of_repository(folder: Path) -> Path:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def run_tests(copy: Path, names: list[str]) -> tuple[int, str]:
    """pytest's exit status for these tests of the copy, and what it printed; forked, so that imports are paid once."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile() as output:
        if not (child := os.fork()):
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.environ["BOOLBERT_TESTS"] = home  # its caches are its own: they may be wrong
            os.environ["PYTHONPATH"] = str(copy.parent)
            sys.path.insert(0, str(copy.parent))
            os.chdir(copy)
            import pytest

            options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", ""]
            status = pytest.main([*options, *names])
            sys.stdout.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return status, output.read().decode(errors="replace")


def problem_of(copy: Path, mutation: Mutation) -> str | None:
    """What is wrong with a mutation; None where its test notices it."""
    file = copy / mutation.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.before) != 1:
        return f"its lines stand {text.count(mutation.before)} times in the file; write it anew"
    file.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
    try:
        status, output = run_tests(copy, [mutation.test])
    finally:
        file.write_text(text, encoding="utf-8")
    if status == 1:  # pytest: some tests failed
        return None
    return "NOT NOTICED" if status == 0 else f"pytest ended with {status}:\n{output[-2000:]}"


def main() -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1"}
    words = sys.argv[1:]
    text = (ROOT / "tests" / "mutations.md").read_text(encoding="utf-8")
    mutations = read_mutations(text)
    if len(mutations) != text.count("```diff"):
        sys.exit("tests/mutations.md: a mutation is not written as the others are")
    chosen = [one for one in mutations if not words or any(word in one.file or word in one.test for word in words)]
    import sentence_transformers  # noqa: F401  # for all that are forked from here

    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_of_repository(Path(folder, "boolbert"))
        status, output = run_tests(copy, sorted({one.test for one in chosen}))
        if status:
            sys.exit(f"the tests have to pass before anything is changed:\n{output[-5000:]}")
        for one in chosen:
            problem = problem_of(copy, one)
            problems += problem is not None
            print(f"{one.file}: {one.what} {problem or 'noticed'}", flush=True)
    print(f"{len(chosen) - problems} of {len(chosen)} mutations were noticed")
    sys.exit(problems > 0)


if __name__ == "__main__":
    main()
