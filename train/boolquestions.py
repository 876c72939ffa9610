"""Stage 3: go on from a stage 2 output with BoolQuestions; reports MRR@10 for AND, OR and NOT.

accelerate launch train/boolquestions.py --encoder runs/quest                        # the embedded countries
accelerate launch train/boolquestions.py --data ustc-zhangzm/BoolQuestions --encoder runs/quest

The encoder is --encoder, else all-MiniLM-L6-v2.
"""

import sys
from dataclasses import dataclass
from typing import Any

from boolbert.core.environment import prepare_training

if __name__ == "__main__":
    prepare_training()  # before torch is imported

from boolbert.core.arguments import flag
from boolbert.core.errors import run_script
from boolbert.data.tasks import boolquestions_splits
from boolbert.retrieval.metrics import boolquestions_metrics
from boolbert.train.arguments import parse_arguments
from boolbert.train.retrieval import RetrievalArguments
from boolbert.train.retrieval_run import run_retrieval


@dataclass
class BoolQuestionsArguments(RetrievalArguments):
    """As in stage 2; the listed negatives are used, and MRR@10 chooses the best evaluation."""

    output_dir: str = flag("runs/boolquestions", "folder for the model, its checkpoints and logs")
    negatives: str = flag("violating", "random, or violating: those that the data lists")
    metric: str | None = flag("mrr@10", "chooses the best evaluation")
    subset: str = flag("MSMARCO", "MSMARCO or NaturalQuestions")


def main() -> None:
    args = parse_arguments(BoolQuestionsArguments, __doc__, sys.argv[1:], embedded="boolquestions_countries.yaml")
    splits: dict[str, Any] = {"dev_split": args.dev_split, "dev_share": args.dev_share}
    run_retrieval(
        "boolquestions",
        args,
        lambda: boolquestions_splits(args.data, subset=args.subset, **splits),
        boolquestions_metrics,
    )


if __name__ == "__main__":
    run_script(main)
