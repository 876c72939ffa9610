"""Data: one schema, readers for QUEST, BoolQuestions and SetBERT files, the embedded default, samplers."""

from ..core.errors import DataError, DataWarning
from .boolquestions import BoolQuestions
from .corpus import Corpus
from .gold import Gold, HardNegatives
from .quest import Quest
from .samplers import Batch, TrainingSampler, epoch_batch
from .schema import BoolQuestion, Document, Query, Triplet
from .setbert import read_triplets

__all__ = [
    "Batch",
    "BoolQuestion",
    "BoolQuestions",
    "Corpus",
    "DataError",
    "DataWarning",
    "Document",
    "Gold",
    "HardNegatives",
    "Query",
    "Quest",
    "TrainingSampler",
    "Triplet",
    "epoch_batch",
    "read_triplets",
]
