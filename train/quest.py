"""Stage 2: train the dual encoder, Bool-BERT for queries and BERT for documents, on QUEST-format data.

accelerate launch train/quest.py                                             # the embedded countries
accelerate launch train/quest.py --encoder runs/pretrain                     # goes on from stage 1
accelerate launch train/quest.py train/recipes/quest_base.yaml --data quest  # the paper's recipe
accelerate launch train/quest.py --data quest --baseline --output_dir runs/baseline

The encoder is --encoder, else all-MiniLM-L6-v2.
"""

import sys

from boolbert.core.environment import prepare_training

if __name__ == "__main__":
    prepare_training()  # before torch is imported

from boolbert.core.errors import run_script
from boolbert.data.tasks import quest_splits
from boolbert.retrieval.metrics import quest_metrics
from boolbert.train.arguments import parse_arguments
from boolbert.train.retrieval import RetrievalArguments
from boolbert.train.retrieval_run import run_retrieval


def main() -> None:
    args = parse_arguments(RetrievalArguments, __doc__, sys.argv[1:], embedded="quest_countries.yaml")
    run_retrieval(
        "quest",
        args,
        lambda: quest_splits(args.data, dev_split=args.dev_split, dev_share=args.dev_share),
        quest_metrics,
    )


if __name__ == "__main__":
    run_script(main)
