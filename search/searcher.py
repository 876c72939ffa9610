"""Ask an index: text in, ranked documents out."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from boolbert.boolean import from_multi_hot, multi_hot, operators_of
from boolbert.errors import RetrievalError
from boolbert.retrieval.batches import encode_queries
from boolbert.retrieval.models import SearchModel, default_model, load_model, prompt_of, side_modules
from boolbert.retrieval.neighbours import top_k
from boolbert.sentence_boolbert import operator_row

from .index import Index, default_index

# Who decides which operators are on.
CALLER, MODEL, LEXICON, NOBODY = "the caller", "the model's gate", "the cue lexicon", "nobody: a plain encoder"


@dataclass(frozen=True)
class Hit:
    """A found document."""

    rank: int
    score: float
    row: int
    title: str
    text: str


@dataclass(frozen=True)
class Answer:
    """The hits of a query, best first; which operators were on, and who said so."""

    query: str
    operators: tuple[str, ...]
    decided_by: str
    hits: tuple[Hit, ...]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class BoolSearcher:
    """A model and an index of documents.

        searcher = BoolSearcher()                            # the newest run, over the embedded countries
        searcher = BoolSearcher("runs/quest", "my_index")    # a folder or Hub id, and a folder of `boolbert index`
        for hit in searcher.search("landlocked countries that are not in Africa", k=5):
            print(hit.rank, hit.title)

    Without a model, the one that the index was made with.
    """

    def __init__(
        self,
        model: str | Path | SearchModel | None = None,
        index: str | Path | Index | None = None,
        *,
        device: str | None = None,
        progress: bool = True,
    ):
        if index is not None and not isinstance(index, Index):
            index = Index(index)
        if model is None and index is not None:
            model = _model_of(index, device)
        elif not isinstance(model, SearchModel):
            model = load_model(model, device=device)
        self.model = model
        self.index = index if index is not None else default_index(model, progress=progress)
        self.index.check_model(model)

    def search(self, query: str, k: int = 10, operators: Sequence[Any] | None = None) -> Answer:
        """The k best documents. `operators`: names such as ["and", "not"]; [] switches every gate off, which makes
        the query encoder a plain BERT; None leaves it to the model, or to the cue lexicon where it is untrained."""
        operators, decided_by = self.decide(query, operators)
        labels = None if self.model.bert is None else [multi_hot(operators)]
        vectors = encode_queries(self.model.encoder, [query], labels)
        scores, rows = top_k(vectors, self.index.vectors, k, device=self.model.encoder.device)
        hits = []
        for rank, (score, row) in enumerate(zip(scores[0].tolist(), rows[0].tolist(), strict=True), start=1):
            document = self.index[row]
            hits.append(Hit(rank, score, row, document.title, document.text))
        return Answer(query, operators, decided_by, tuple(hits))

    def decide(self, query: str, operators: Sequence[Any] | None = None) -> tuple[tuple[str, ...], str]:
        """Which operators are on for a query, and who says so."""
        if not query.strip():
            raise RetrievalError("the query is empty; give some words to search for")
        if any("\ud800" <= letter <= "\udfff" for letter in query):
            raise RetrievalError(f"the query {query!r} is not valid UTF-8; check the terminal's or the file's encoding")
        row = operator_row(operators)
        if self.model.bert is None:
            if row is not None and any(row):
                raise RetrievalError(
                    f"operators cannot be given: the query encoder of {self.model.name} is no Bool-BERT"
                )
            return (), NOBODY
        if row is not None:
            return from_multi_hot(row), CALLER
        if not self.model.trained:
            return from_multi_hot(multi_hot(operators_of(query))), LEXICON
        return from_multi_hot(self.read(query).operators[0].tolist()), MODEL

    @torch.inference_mode()
    def read(self, query: str, **options: Any) -> Any:
        """What the Bool-BERT inside gives for a query."""
        features = self.features(query)
        names = ("input_ids", "attention_mask", "token_type_ids")
        bert = self.model.bert
        if bert is None:
            raise RetrievalError(f"{self.model.name}: is a plain encoder, without Boolean-aware attention")
        return bert.eval()(**{name: features[name].to(bert.device) for name in names if name in features}, **options)

    @cached_property
    def offset_tokenizer(self) -> Any:
        """A copy of the query's tokenizer that neither truncates nor pads, for the places of tokens in a query."""
        tokenizer = copy.deepcopy(side_modules(self.model.encoder, "query")[0].tokenizer)
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        return tokenizer

    def features(self, query: str) -> dict[str, Any]:
        """The query as the encoder takes it."""
        prompt = prompt_of(self.model.encoder, "query")
        return self.model.encoder.preprocess([query], prompt=prompt, task="query")


def _model_of(index: Index, device: str | None) -> SearchModel:
    """The model that an index was made with. The default encoder's vectors serve a run that left them as they were."""
    if index.model is not None:
        return load_model(index.model, device=device)
    model = load_model(device=device)
    return model if model.name is None or index.fits(model) else default_model(device)
