"""A plain function from texts to vectors, such as a call of an API, as a model to index, search and serve with.

model = function_model(embed, "my-api-model-3")
index = build_index("documents.csv", "my_index", model)
BoolSearcher(model, index).search("hotels without a pool")
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule

from boolbert.core.checks import as_list
from boolbert.core.errors import RetrievalError, check_text, shorten
from boolbert.retrieval.models import SearchModel, note_on

LARGEST = 1e15  # number in a vector, whose square is a float32

Embed = Callable[[Sequence[str]], Any]


def function_model(embed: Embed, name: str, *, embed_queries: Embed | None = None) -> SearchModel:
    """A model of a function; its vectors are compared by cosine.

    name: tells an index whose vectors it holds, so give another one to a function that computes others. embed_queries:
    where queries are embedded in another way than documents.
    """
    for function in (embed, embed if embed_queries is None else embed_queries):
        if not callable(function):
            raise RetrievalError(f"give a function from texts to vectors, got a {type(function).__name__}")
    if not isinstance(name, str) or not name.strip():
        raise RetrievalError(f"name must be a text that tells the function from others, got {name!r}")
    module = EmbeddingFunction(embed, embed_queries or embed, name)
    encoder = SentenceTransformer(modules=[module], device="cpu", similarity_fn_name="cosine")
    return SearchModel(name, encoder, note_on(name, is_boolean=False))


class EmbeddingFunction(InputModule):
    """The function as the only module of a SentenceTransformer."""

    def __init__(self, embed: Embed, embed_queries: Embed, name: str):
        super().__init__()
        self.embed, self.embed_queries, self.name = embed, embed_queries, name

    def preprocess(self, inputs: Any, prompt: str | None = None, **options: Any) -> dict[str, Any]:
        return {"texts": list(inputs), "task": options.get("task")}

    def forward(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
        embed = self.embed_queries if features["task"] == "query" else self.embed
        vectors = vectors_of(embed, features["texts"], self.name)
        return {**features, "sentence_embedding": torch.from_numpy(vectors)}

    def get_embedding_dimension(self) -> int:
        """How many numbers its vectors have: a store asks before anything is embedded."""
        return self._size

    @cached_property
    def _size(self) -> int:
        return vectors_of(self.embed, ["size"], self.name).shape[1]

    def get_config_dict(self) -> dict[str, Any]:
        return {"function": self.name}

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        raise RetrievalError(f"{self.name}: is a function, which cannot be saved; give it again where it is used")


def listed(texts: Any) -> list[str]:
    """Texts that came as a list, a pandas Series, an array, a generator or the like.

    >>> listed(text for text in ("a", "b"))
    ['a', 'b']
    """
    found = as_list("the texts", texts, "strings")
    if wrong := [type(item).__name__ for item in found if not isinstance(item, str)][:1]:
        raise RetrievalError(f"the texts must be a list of strings, got one that holds a {wrong[0]}")
    return [
        check_text(text, f"text {number}, {shorten(text)},", RetrievalError) for number, text in enumerate(found, 1)
    ]


def vectors_of(embed: Embed, texts: Sequence[str], name: str = "the embedder") -> npt.NDArray[np.float32]:
    """What a function makes of texts; raises where that is not a vector for each."""
    texts = listed(texts)
    given = embed(list(texts))
    try:
        numbers = np.array(given.detach().cpu().float().numpy() if hasattr(given, "detach") else given)
        if numbers.dtype.kind in "cOSU":  # complex numbers, objects, texts
            raise TypeError
    except (TypeError, ValueError):
        kind = type(given).__name__
        raise RetrievalError(f"{name} must give a vector of numbers for each text; it gave a {kind}") from None
    if numbers.ndim != 2 or len(numbers) != len(texts) or not numbers.shape[1]:
        raise RetrievalError(
            f"{name} must give a vector for each text: {len(texts)} texts gave an array of shape {numbers.shape}"
        )
    if not (np.abs(numbers) < LARGEST).all():  # NaN is not either
        raise RetrievalError(f"{name} gave NaN, or numbers too large to compare, for one of the texts")
    return numbers.astype(np.float32)
