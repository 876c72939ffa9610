"""Evaluate a retriever on BoolQuestions: MRR@10 and accuracy@K for AND, OR and NOT, on positives and negatives.

python eval/boolquestions.py                                                # questions about the embedded countries
python eval/boolquestions.py --model DIR_OR_HUB_ID --data DIR_OR_HUB_ID --subset MSMARCO --output_dir DIR

Writes metrics.json, per_query.jsonl, run.trec, qrels.trec, pictures and report.html.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import run_script
from boolbert.data.tasks import boolquestions_task
from boolbert.eval.single import SingleArguments, evaluate_model
from boolbert.retrieval.metrics import boolquestions_metrics


@dataclass
class Arguments(SingleArguments):
    split: str = flag("eval", "the questions to ask")
    subset: str = flag("MSMARCO", "MSMARCO or NaturalQuestions")
    output_dir: str = flag("runs/eval-boolquestions", "folder for the results")


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    task = boolquestions_task(args.data, args.split, args.subset, args.limit)
    evaluate_model(args, task, boolquestions_metrics, "mrr@10")


if __name__ == "__main__":
    run_script(main)
