"""Stage 1: pretrain Boolean-aware attention on cues, operators and triplets of Boolean sentences.

accelerate launch train/pretrain.py                                                # the embedded sentences
accelerate launch train/pretrain.py train/recipes/pretrain.yaml --data setbert     # the paper's recipe
accelerate launch train/pretrain.py --encoder google-bert/bert-base-uncased --output_dir runs/pretrain-base

Only BoolAttn and the embedding layer learn. The output is an --encoder for quest.py, and loads with AutoModel.
"""

import sys
from typing import Any

from boolbert.core.environment import prepare_training

if __name__ == "__main__":
    prepare_training()  # before torch is imported

from boolbert import BoolBertForPreTraining
from boolbert.core.errors import run_script
from boolbert.data import Triplet, read_triplets
from boolbert.data.embedded import sentences_folder
from boolbert.data.tasks import keep_and_hold
from boolbert.train.arguments import parse_arguments
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.logs import print_pretraining
from boolbert.train.loop import Trainer
from boolbert.train.outputs import (
    fingerprint,
    identity,
    is_finished,
    make_accelerator,
    open_run,
    save_run,
)
from boolbert.train.pretraining import PretrainArguments, PretrainingStage
from boolbert.train.sentences import prepare_triplets
from boolbert.train.start import Start, find_start

EMBEDDED = "sentences"


def main() -> None:
    args = parse_arguments(PretrainArguments, __doc__, sys.argv[1:], embedded="pretrain_sentences.yaml")
    accelerator = make_accelerator(args)
    start = find_start(args.encoder, allow_random=args.allow_random)
    train, dev, note = read_data(args)
    wanted = identity(args, accelerator, fingerprint(*train, *dev))
    if is_finished(args, wanted, start.path):
        accelerator.print(f"{args.output_dir} is finished, with these flags and this data; --overwrite trains it again")
        return
    accelerator.print(f"{start.encoder.note}\n{note}")
    tokenizer = start.tokenizer()
    stage = PretrainingStage(
        build_model(start, args),
        prepare_triplets(train, tokenizer, max_length=args.query_length, rate=args.augment, seed=args.seed),
        prepare_triplets(dev, tokenizer, max_length=args.query_length),
        accelerator,
        args,
    )
    trainer = Trainer(stage, args, accelerator, wanted)
    open_run("pretrain", args, accelerator, wanted, start.record())
    progress = trainer.fit()
    if accelerator.is_main_process:
        # With the plain BERT that it came from as its document encoder: what stage 2 starts from.
        settings = {"pooling": start.encoder.pooling, "similarity": start.encoder.similarity}
        model = DualEncoder(stage.bert.bert.cpu(), start.document_encoder(), **settings)
        metrics = progress.metrics(stage.metric)
        save_run(args, model, tokenizer, metrics, query_length=args.query_length)
        print_pretraining(args.output_dir, metrics)
    accelerator.end_training()


def read_data(args: PretrainArguments) -> tuple[list[Triplet], list[Triplet], str]:
    """Training and held-out triplets, and a line about them."""
    data = args.data or EMBEDDED
    train = list(read_triplets(data, skip_bad=args.skip_bad))
    if data == EMBEDDED:
        dev = list(read_triplets(sentences_folder("dev")))
    else:
        kept, held = keep_and_hold(len(train), args.dev_share)
        train, dev = [train[row] for row in kept], [train[row] for row in held]
    if args.max_rows is not None:
        names = dict.fromkeys(triplet.operator for triplet in train)  # in their order, which a set does not keep
        train = [t for name in names for t in [t for t in train if t.operator == name][: args.max_rows]]
    return train, dev, f"Data: {data}, {len(train):,} triplets, {len(dev):,} held out"


def build_model(start: Start, args: PretrainArguments) -> BoolBertForPreTraining:
    bert: Any = start.query_encoder(baseline=False, seed=args.seed)
    model = BoolBertForPreTraining(bert.config)
    model.bert = bert
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    return model


if __name__ == "__main__":
    run_script(main)
