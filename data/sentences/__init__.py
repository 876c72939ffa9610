"""Boolean sentences for pretraining, in SetBERT's schema, from the project's own word lists."""

from .generate import SPLITS, Triplet, all_sentences, boolean_sentences

__all__ = ["SPLITS", "Triplet", "all_sentences", "boolean_sentences"]
