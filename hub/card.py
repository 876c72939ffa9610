"""The model card: the Hub's metadata with the run's results, how to use the model, and what to know before."""

import re
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from ..retrieval.encoders import DEFAULT
from .assemble import is_boolean, read_json

PAPER = "Boolean-aware Attention for Dense Retrieval (Quan Mai, Susan Gauch, Douglas Adams)"
EMBEDDED = "World countries (embedded in boolbert)"
# Numbers of metrics.json that describe the run, not the model.
NOT_METRICS = {"seed", "steps", "seconds", "best_epoch", "epoch", "queries"}
SECTIONS = {
    "dev": "dev split",
    "test": "test split",
    "dev_without_labels": "dev split, operators predicted from the text",
    "test_without_labels": "test split, operators predicted from the text",
}
LIMITS = """\
- Scope and strength follow from the cues that the model finds. A cue that is missed or only implied ("renewables over
  fossil fuels") is not acted upon: check results in sensitive domains such as law, medicine and finance.
- Attention that turns away from a negated phrase does not by itself exclude the documents that the phrase describes.
- There is no ground truth for scopes; they are learned from what retrieval rewards, on small Boolean data sets.
- Boolean-aware attention adds about a tenth to BERT's parameters, and takes longer on every query."""


def read_metrics(run: Path) -> dict[str, dict[str, float]]:
    """The sections of a run's `metrics.json`, each a flat name -> number.

    A section is any object of the file that holds numbers, such as "dev" and "test"; numbers outside of one count as
    "dev". Nested objects (groups) are told in the run's own report and left out here.
    """
    file = run / "metrics.json"
    if not file.exists():
        return {}
    content = read_json(file)
    outside = _numbers(content)
    sections = {"dev": outside} if outside else {}
    for name, value in content.items():
        if isinstance(value, dict) and name not in ("arguments", "history") and _numbers(value):
            sections[name] = {**sections.get(name, {}), **_numbers(value)}
    return sections


def _numbers(section: dict[str, Any]) -> dict[str, float]:
    """
    >>> _numbers({"recall@20": 0.5, "seed": 0, "name": "x", "done": True, "groups": {}})
    {'recall@20': 0.5}
    """
    return {
        name: float(value)
        for name, value in section.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in NOT_METRICS
    }


def data_name(run: Path) -> str:
    """What the run was trained on: a Hub id, a folder's last name, or the embedded data."""
    given = _arguments(run).get("data")
    if not given:
        return EMBEDDED
    is_hub_id = isinstance(given, str) and given.count("/") == 1 and not Path(given).exists()
    return given if is_hub_id else Path(str(given)).name


def base_model(run: Path) -> str | None:
    """The Hub id that the run, or the earlier run it went on from, started with; None where that is not known."""
    start = read_json(run / "args.json").get("start", {}) if (run / "args.json").exists() else {}
    if start.get("kind") in ("hub", "minilm"):
        return DEFAULT
    earlier = Path(start.get("encoder", run))
    if earlier != run and (earlier / "args.json").exists():
        return base_model(earlier)
    given = _arguments(run).get("encoder")
    return given if isinstance(given, str) and given.count("/") == 1 and not Path(given).exists() else None


def _arguments(run: Path) -> dict[str, Any]:
    for name in ("metrics.json", "args.json"):
        if (run / name).exists() and isinstance(found := read_json(run / name).get("arguments"), dict):
            return found
    return {}


def card_data(run: Path, repo: str) -> ModelCardData:
    """The metadata at the head of the card."""
    name = repo.rpartition("/")[2]
    data = data_name(run)
    results = [
        EvalResult(
            task_type="text-retrieval",
            task_name="Retrieval with Boolean queries",
            dataset_type=data if "/" in data else re.sub("[^a-z0-9]+", "-", data.lower()).strip("-"),
            dataset_name=f"{data}, {SECTIONS.get(section, section)}",
            dataset_config=section,
            dataset_split=section.partition("_")[0],
            metric_type=metric,
            metric_value=round(value, 4),
        )
        for section, metrics in read_metrics(run).items()
        for metric, value in metrics.items()
    ]
    tags = ["sentence-transformers", "sentence-similarity", "feature-extraction", "dense-retrieval", "negation"]
    return ModelCardData(
        language="en",
        license="apache-2.0",
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=[*tags, *(["boolean-queries", "boolbert", "custom_code"] if is_boolean(run) else ["baseline"])],
        base_model=base_model(run),
        datasets=[data] if "/" in data else None,
        model_name=name if results else None,
        eval_results=results or None,
    )


def write_card(run: Path, repo: str, folder: Path) -> None:
    """Write README.md."""
    text = f"---\n{card_data(run, repo).to_yaml()}\n---\n\n{card_text(run, repo)}"
    (folder / "README.md").write_text(text, encoding="utf-8")


def card_text(run: Path, repo: str) -> str:
    boolean = is_boolean(run)
    trust = ", trust_remote_code=True" if boolean else ""
    settings = read_json(run / "config_sentence_transformers.json")
    size = read_json(run / "config.json")["hidden_size"]
    similarity = {"dot": "dot product", "cosine": "cosine"}.get(settings.get("similarity_fn_name"), "cosine")
    what = (
        "Bool-BERT, a BERT whose attention knows AND, OR and NOT, encodes the queries; a plain BERT the documents"
        if boolean
        else "A plain BERT encodes the queries, another the documents: the baseline of a Bool-BERT"
    )
    operators = (
        "\n# Who knows the operators says so; otherwise the model finds them.\n"
        'queries = model.encode_query(["islands that are not monarchies"], operators=[["not"]])'
        if boolean
        else ""
    )
    requirements = " ".join(f'"{name}{version}"' for name, version in settings.get("requirements", {}).items())
    return f"""\
# {repo.rpartition("/")[2]}

{what}. Vectors have {size} dimensions and are compared by {similarity}. After the paper *{PAPER}*.

## Use

    pip install {requirements or "sentence-transformers"}

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{repo}"{trust})
queries = model.encode_query(["islands that are not monarchies"])
documents = model.encode_document(["Iceland is an island and a republic.", "Japan is an island and a monarchy."])
print(model.similarity(queries, documents))
{operators}
```

The query encoder alone, as a transformers model:

```python
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{repo}")
model = AutoModel.from_pretrained("{repo}"{trust})
states = model(**tokenizer("islands that are not monarchies", return_tensors="pt")).last_hidden_state
```

## Results

{results_table(run)}

## Training data

{data_name(run)}.

## Limits

{LIMITS if boolean else "Plain BERT hardly acts on NOT: documents that a query excludes rank high."}
"""


def results_table(run: Path) -> str:
    """One table of all sections, metrics as columns."""
    sections = read_metrics(run)
    if not sections:
        return "The run holds no `metrics.json`: nothing was measured."
    names = list(dict.fromkeys(name for metrics in sections.values() for name in metrics))
    rows = [["", *names], ["---"] * (len(names) + 1)]
    for section, metrics in sections.items():
        cells = [f"{metrics[name]:.4g}" if name in metrics else "" for name in names]
        rows.append([SECTIONS.get(section, section), *cells])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    note = "`violations`: the share of excluded documents among the first results; lower is better."
    return f"{table}\n\n{note}" if "violations" in names else table
