"""Boolean sentences for pretraining: triplets in SetBERT's schema, and sentences with the scopes of their operators."""

from .generate import SPLITS, Triplet, boolean_sentences
from .labelled import Sentence, labelled_sentences

__all__ = ["SPLITS", "Sentence", "Triplet", "boolean_sentences", "labelled_sentences"]
