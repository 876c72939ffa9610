# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""The page as a Hugging Face Space, whose folder is this repository (docs/serve.md says how).

python app.py                        # the same as boolbert serve

An index of your own: a folder of `boolbert index` called `index`, beside this file.
"""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).resolve().parent
INDEX = ROOT / "index"


def use_this_folder() -> None:
    """Let `import boolbert` find this folder. A Space installs requirements.txt, and not the repository itself."""
    spec = spec_from_file_location("boolbert", ROOT / "__init__.py", submodule_search_locations=[str(ROOT)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["boolbert"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["boolbert"])


def main() -> None:
    if find_spec("boolbert") is None:
        use_this_folder()
    from boolbert.core.environment import keep_freed_memory

    keep_freed_memory()
    from boolbert.search import BoolSearcher
    from boolbert.serve.engine import Engine
    from boolbert.serve.page import EXAMPLES, serve

    index = INDEX if INDEX.is_dir() else None
    serve(Engine(lambda: (BoolSearcher(index=index, progress=False), None)), EXAMPLES if index is None else ())


if __name__ == "__main__":
    main()
