"""Run a stage with several seeds, and print the mean and standard deviation of its metrics.

python train/seeds.py train/quest.py --data quest --output_dir runs/quest-seeds
python train/seeds.py train/quest.py --seeds 0 42 1234 --jobs 3 --data quest --baseline --output_dir runs/baseline

All flags but --seeds, --jobs and --launch go to the stage; each seed has its own folder in --output_dir. The stage
passes over a seed that is finished there with the same flags; --resume goes on with one that was stopped.
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

from boolbert.core.errors import TrainingError, run_script
from boolbert.core.files import write_json
from boolbert.core.runs import Run
from boolbert.core.tables import number

SEEDS = (0, 42, 1234)


def parse_arguments(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("script", help="the stage's script: train/quest.py, ...")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--launch", default="", help="flags for `accelerate launch`, in one string")
    parser.add_argument("--output_dir", required=True, help="folder for one folder per seed, and the table")
    return parser.parse_known_args(words)


def main() -> None:
    options, flags = parse_arguments(sys.argv[1:])
    folder = Path(options.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    gpus: Queue[str | None] = Queue()
    for gpu in free_gpus(options.jobs):
        gpus.put(gpu)
    with ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(lambda seed: run_seed(options, flags, seed, gpus), options.seeds))
    for seed, code in zip(options.seeds, codes, strict=True):
        if code:
            output = folder / f"seed-{seed}.txt"
            lines = output.read_text(encoding="utf-8").splitlines()
            reason = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "see there")
            raise TrainingError(f"seed {seed} failed, its output is {output}: {reason}")
    runs = [Run(folder / f"seed-{seed}").metrics for seed in options.seeds]
    summary = {
        name: summarise([run[name] for run in runs]) for name in ("dev", "dev_without_labels") if name in runs[0]
    }
    write_json(folder / "seeds.json", {"seeds": options.seeds, **summary})
    print(seed_table(summary["dev"], options.seeds))


def free_gpus(jobs: int) -> list[str | None]:
    """A GPU for each of the runs at the same time, in turn; None where there is nothing to share out."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else [str(number) for number in range(torch.cuda.device_count())]
    return [gpus[job % len(gpus)] for job in range(jobs)] if jobs > 1 and len(gpus) > 1 else [None] * jobs


def run_seed(options: argparse.Namespace, flags: list[str], seed: int, gpus: "Queue[str | None]") -> int:
    """The exit code of one run; what it prints goes to a file, and to the screen where runs do not overlap."""
    folder = Path(options.output_dir) / f"seed-{seed}"
    # A recipe file comes first, as in the stage itself; the seed and the folder come last, so that they hold.
    words = [options.script, *flags, "--seed", str(seed), "--output_dir", str(folder)]
    command = [sys.executable, "-m", "accelerate.commands.launch", *shlex.split(options.launch), *words]
    gpu = gpus.get()
    environment = {**os.environ, **({"CUDA_VISIBLE_DEVICES": gpu} if gpu is not None else {})}
    print(f"seed {seed}: {shlex.join(words)}", flush=True)
    try:
        with Path(f"{folder}.txt").open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            )
            for line in process.stdout or ():
                file.write(line)
                if options.jobs == 1:
                    print(line, end="", flush=True)
            return process.wait()
    finally:
        gpus.put(gpu)


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean and standard deviation of every number, in the form of the runs' own metrics.

    >>> summarise([{"mrr@10": 0.4, "groups": {"_": {"ndcg": 1.0}}}, {"mrr@10": 0.6, "groups": {"_": {"ndcg": 1.0}}}])
    {'mrr@10': {'mean': 0.5, 'sd': 0.1414}, 'groups': {'_': {'ndcg': {'mean': 1.0, 'sd': 0.0}}}}
    """
    summary: dict[str, Any] = {}
    for name, value in runs[0].items():
        values = [run[name] for run in runs if name in run]
        if isinstance(value, dict):
            summary[name] = summarise(values)
        elif isinstance(value, float):
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            summary[name] = {"mean": round(statistics.fmean(values), 4), "sd": round(deviation, 4)}
    return summary


def seed_table(dev: dict[str, Any], seeds: list[int]) -> str:
    """A Markdown table of means and standard deviations.

    >>> print(seed_table({"mrr@10": {"mean": 0.5, "sd": 0.1}}, [0, 42]))
    Mean and standard deviation over the seeds 0, 42
    <BLANKLINE>
    | | mrr@10 |
    | --- | --- |
    | all | .500 ± .100 |
    """
    names = [name for name, value in dev.items() if "mean" in value]
    rows = [("all", dev), *dev.get("groups", {}).items()]
    lines = [f"Mean and standard deviation over the seeds {', '.join(map(str, seeds))}", ""]
    lines += [f"| | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for label, values in rows:
        found = [values.get(name) for name in names]
        cells = [f"{number(value['mean'])} ± {number(value['sd'])}" if value else "-" for value in found]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run_script(main)
