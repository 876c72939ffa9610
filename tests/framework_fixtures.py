"""A made collection of forty hotels, and encoders for it."""

import re
from itertools import product

import numpy as np

PLACES = ("by the sea", "in the hills", "near the station", "in the old town", "at the airport")
KINDS = ("quiet", "large")
FACTS = ("It has a pool.", "There is no pool.", "Pets are welcome, and there is a pool.", "It has a garden.")
HOTELS = [f"A {kind} hotel {place}. {fact}" for kind, place, fact in product(KINDS, PLACES, FACTS)]
QUERIES = (
    "hotels without a pool",
    "a hotel by the sea or in the hills",
    "quiet hotels that are not at the airport",
    "hotel garden -airport",
    "a large hotel near the station",
)


def words_in(text):
    return re.findall(r"\w+", text.lower())


def bag_of_words(texts, words_in=words_in):
    """A plain function from texts to vectors: texts that share words are near to one another."""
    vectors = np.zeros((len(texts), 64), np.float32)
    for row, text in enumerate(texts):
        for word in words_in(text):
            vectors[row] += np.random.default_rng(list(word.encode())).normal(size=64)
    return vectors
