"""Imported once by the process that others are forked from: what each of them would do first is done already."""

from importlib import import_module
from importlib.util import find_spec

import remembered
from transformers.conversion_mapping import get_checkpoint_conversion_mapping

MODULES = [
    *("accelerate.commands.launch", "matplotlib.pyplot", "matplotlib.backends.backend_agg", "PIL.PngImagePlugin"),
    *("torch.distributed.fsdp", "torch.profiler", "transformers.models.bert.tokenization_bert"),
    *("boolbert.cli.commands", "boolbert.cli.main", "boolbert.retrieval.encoders", "boolbert.search.export"),
    *("boolbert.retrieval.stores.milvus_store", "boolbert.sentence_boolbert", "boolbert.train.pretrain"),
    *("boolbert.eval.quest", "boolbert.train.quest", "process_helpers", "training_helpers", "faults.server"),
]
CLIENTS = [name for name in ("pymilvus", "qdrant_client") if find_spec(name)]
for name in MODULES + CLIENTS:
    import_module(name)
remembered.install()
get_checkpoint_conversion_mapping("bert")  # transformers compiles the patterns of all models for the first one
