"""Evaluate a retriever on QUEST-format data.

python eval/quest.py                                                        # the embedded countries
python eval/quest.py --model DIR_OR_HUB_ID --data DIR_OR_HUB_ID --split dev --output_dir DIR

Writes metrics.json, per_query.jsonl, run.trec, qrels.trec, pictures and report.html.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import run_script
from boolbert.data.tasks import quest_task
from boolbert.eval.single import SingleArguments, evaluate_model
from boolbert.retrieval.metrics import main_metric, quest_metrics


@dataclass
class Arguments(SingleArguments):
    split: str = flag("dev", "the queries to ask")
    output_dir: str = flag("runs/eval-quest", "folder for the results")


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    task = quest_task(args.data, args.split, args.limit)
    evaluate_model(args, task, quest_metrics, main_metric(len(task.corpus)))


if __name__ == "__main__":
    run_script(main)
