"""The card of the published document reader: what it says, how to use it, how well it reads."""

import json
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData
from safetensors import safe_open

from ..core.pages import render
from ..retrieval.adapters import DOCUMENT_READER
from ..retrieval.encoders import DEFAULT
from .card import read_requirements, write_readme
from .modeling_document_reader import LABELS

MEASURES = ("affirmed against the rest", "affirmed against denied", "right of three")


def write_reader_card(repo: str, folder: Path) -> None:
    """Write README.md into an assembled folder."""
    data = ModelCardData(
        language="en",
        license="apache-2.0",
        library_name="sentence-transformers",
        pipeline_tag="text-classification",
        tags=["sentence-transformers", "cross-encoder", "negation", "boolbert", "custom_code"],
        base_model=DEFAULT,
    )
    text = render(
        "reader_card.md",
        name=repo.rpartition("/")[2],
        repo=repo,
        labels=LABELS,
        requirements=read_requirements(folder / "config_sentence_transformers.json"),
        measures=MEASURES,
        results=results_of(DOCUMENT_READER),
    )
    write_readme(folder, data, text)


def results_of(adapters: Path) -> dict[str, list[float]]:
    """What training has measured of adapters, for each author that they have not learned from: `MEASURES`."""
    with safe_open(adapters, framework="np") as file:
        told: dict[str, Any] = json.loads(file.metadata()["learned_from"])
    return {author: [found[name] for name in MEASURES] for author, found in told.items() if isinstance(found, dict)}
