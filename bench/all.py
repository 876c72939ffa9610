r"""Every speed that this project promises, in one run: model, encoding, training, search and reading.

python bench/all.py                                     # on whatever there is; CPUs get smaller shapes and counts
python bench/all.py --device cuda                       # everything on a GPU in bf16, about 10 minutes
python bench/all.py --only model search --rounds 20

What is compared takes turns in one process, and medians are shown: only such ratios mean something. Each part runs by
itself; one that fails says why, and the others go on. Nothing is downloaded: models have random weights, texts are made
of the embedded countries' words.
"""

import argparse
import os
import time
import traceback
from importlib import import_module

from boolbert.core.environment import prepare_training

PARTS = {
    "model": "speed.model",
    "encode": "speed.encoding",
    "train": "speed.training",
    "search": "speed.search",
    "read": "speed.reading",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu or cuda; the best there is if not given")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts alone")
    parser.add_argument("--rounds", type=int, help="how often each is timed; 15 on a GPU, 7 on a CPU")
    parser.add_argument("--documents", type=int, help="to encode; 32,768 on a GPU, 512 on a CPU")
    parser.add_argument("--sizes", type=int, nargs="+", help="of the searched indexes; up to 1,000,000 on a GPU")
    parser.add_argument("--threads", type=int, help="CPU threads of torch")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    prepare_training()
    import torch
    import transformers

    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    options.gpu = options.device.startswith("cuda")
    options.rounds = options.rounds or (15 if options.gpu else 7)
    options.documents = options.documents or (32_768 if options.gpu else 512)
    options.sizes = options.sizes or [10_000, 100_000, *([1_000_000] if options.gpu else [])]
    options.dtype = torch.bfloat16 if options.gpu else torch.float32
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    name = torch.cuda.get_device_name() if options.gpu else f"CPU, {torch.get_num_threads()} threads"
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{name}, {options.dtype}, {os.cpu_count()} cores, {versions}")
    for part in (part for part in PARTS if part in options.only):
        began = time.perf_counter()
        try:
            import_module(PARTS[part]).measure(options)
        except Exception:  # the other parts are worth having
            traceback.print_exc()
        print(f"-- {part}: {time.perf_counter() - began:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
