"""A plain function from texts to vectors, such as a call of an API, as a model to index, search and serve with.

model = function_model(embed, "my-api-model-3")
index = build_index("documents.csv", "my_index", model)
BoolSearcher(model, index).search("hotels without a pool")
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.models import SearchModel, note_on

Embed = Callable[[Sequence[str]], Any]


def function_model(embed: Embed, name: str, *, embed_queries: Embed | None = None) -> SearchModel:
    """A model of a function; its vectors are compared by cosine.

    name: tells an index whose vectors it holds, so give another one to a function that computes others. embed_queries:
    where queries are embedded in another way than documents.
    """
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
        texts = features["texts"]
        vectors = np.array((self.embed_queries if features["task"] == "query" else self.embed)(texts), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise RetrievalError(
                f"{self.name}: must give a vector for each text: {len(texts)} texts gave the shape {vectors.shape}"
            )
        return {**features, "sentence_embedding": torch.from_numpy(vectors)}

    def get_embedding_dimension(self) -> int:
        size: int = self.forward({"texts": ["size"], "task": "document"})["sentence_embedding"].shape[1]
        return size

    def get_config_dict(self) -> dict[str, Any]:
        return {"function": self.name}

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        raise RetrievalError(f"{self.name}: is a function, which cannot be saved; give it again where it is used")
