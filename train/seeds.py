"""Run a stage with several seeds, and print the mean and standard deviation of its metrics.

python train/seeds.py train/quest.py --data quest --output_dir runs/quest-seeds
python train/seeds.py train/quest.py --seeds 0 42 1234 --data quest --baseline --output_dir runs/baseline

All flags but --seeds and --launch go to the stage; each seed has its own folder in --output_dir. The stage
passes over a seed that is finished there with the same flags; --resume goes on with one that was stopped.
"""

import argparse
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
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
    parser.add_argument("--launch", default="", help="flags for `accelerate launch`, in one string")
    parser.add_argument("--output_dir", required=True, help="folder for one folder per seed, and the table")
    return parser.parse_known_args(words)


def main() -> None:
    options, flags = parse_arguments(sys.argv[1:])
    folder = Path(options.output_dir)
    folders = [folder / f"seed-{seed}" for seed in options.seeds]
    for seed, own in zip(options.seeds, folders, strict=True):
        # A recipe file comes first, as in the stage itself; the seed and the folder come last, so that they hold.
        words = [options.script, *flags, "--seed", str(seed), "--output_dir", str(own)]
        print(f"seed {seed}: {shlex.join(words)}", flush=True)
        command = [sys.executable, "-m", "accelerate.commands.launch", *shlex.split(options.launch), *words]
        if subprocess.run(command, check=False).returncode:
            raise TrainingError(f"seed {seed} failed, see above; the same command goes on from there with --resume")
    runs = [Run(own).metrics for own in folders]
    summary = {
        name: summarise([run[name] for run in runs]) for name in ("dev", "dev_without_labels") if name in runs[0]
    }
    write_json(folder / "seeds.json", {"seeds": options.seeds, **summary})
    print(seed_table(summary["dev"], options.seeds))


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
