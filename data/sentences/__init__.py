"""Made sentences with the scopes of their operators: what the reading learns from."""

from .labelled import Sentence, labelled_sentences

__all__ = ["Sentence", "labelled_sentences"]
