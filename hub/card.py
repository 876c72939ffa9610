"""The model card: the Hub's metadata with the run's results, how to use the model, and what to know before."""

import re
from pathlib import Path
from typing import Any, TypeGuard

from huggingface_hub import EvalResult, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from packaging.requirements import InvalidRequirement, Requirement

from ..core.errors import HubError, shorten
from ..core.files import read_object
from ..core.pages import render
from ..core.runs import METRICS, Run
from ..core.terminal import printable
from ..retrieval.encoders import DEFAULT

PAPER = "Boolean-aware Attention for Dense Retrieval (Quan Mai, Susan Gauch, Douglas Adams)"
EMBEDDED = "World countries (embedded in boolbert)"
LARGEST = 1e12
# Numbers of metrics.json that describe the run, not the model.
NOT_METRICS = {"seed", "steps", "seconds", "best_epoch", "epoch", "queries"}
SECTIONS = {
    "dev": "dev split",
    "test": "test split",
    "dev_without_labels": "dev split, operators predicted from the text",
    "test_without_labels": "test split, operators predicted from the text",
}


def read_metrics(run: Path) -> dict[str, dict[str, float]]:
    """The sections of a run's `metrics.json`, each a flat name -> number.

    A section is any object of the file that holds numbers, such as "dev" and "test"; numbers outside of one count as
    "dev". Objects inside a section (groups of queries) are left out.
    """
    file = run / METRICS
    content = Run(run).metrics
    outside = _numbers(content, file)
    sections = {"dev": outside} if outside else {}
    for name, value in content.items():
        if isinstance(value, dict) and name not in ("arguments", "history") and (numbers := _numbers(value, file)):
            sections[name] = {**sections.get(name, {}), **numbers}
    return sections


def _numbers(section: dict[str, Any], file: Path) -> dict[str, float]:
    """
    >>> _numbers({"recall@20": 0.5, "seed": 0, "name": "x", "done": True, "groups": {}}, Path("metrics.json"))
    {'recall@20': 0.5}
    """
    numbers = {
        name: value
        for name, value in section.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in NOT_METRICS
    }
    for name, value in numbers.items():
        if not abs(value) < LARGEST:
            raise HubError(f"{file}: {shorten(name)} is {shorten(value)}: the run diverged, there is no result")
    return {name: float(value) for name, value in numbers.items()}


def data_name(run: Path) -> str:
    """What the run was trained on: a Hub id, the last part of a folder's path, or the embedded data."""
    data = Run(run).data
    return EMBEDDED if not data else hub_data(run) or Path(data).name


def hub_data(run: Path) -> str | None:
    """The Hub data set that the run was trained on; None for local or embedded data."""
    data = Run(run).data
    return data if Run(run).data_is_from_hub and is_hub_id(data) else None


def base_model(run: Path) -> str | None:
    """The Hub id that the run, or the earlier run it went on from, started with; None where that is not known."""
    seen: set[Path] = set()
    while run.resolve() not in seen:  # two runs may name each other
        seen.add(run.resolve())
        start, encoder = Run(run).start, Run(run).arguments.get("encoder")
        if start.get("kind") in ("hub", "minilm"):
            return DEFAULT
        if not isinstance(path := start.get("encoder"), str):
            return None
        # A model from the Hub was read out of its cache; a name that was read as it stands is a folder.
        if is_hub_id(encoder) and f"models--{encoder.replace('/', '--')}" in Path(path).parts:
            return encoder
        run = Path(path)
    return None


def is_hub_id(name: Any) -> TypeGuard[str]:
    """Whether a repository on the Hub could have this name.

    >>> is_hub_id("org/name"), is_hub_id("../name"), is_hub_id("a/b/c"), is_hub_id(None)
    (True, False, False, False)
    """
    if not isinstance(name, str) or name.count("/") != 1:
        return False
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def literal(name: str) -> str:
    """A name from a file as Markdown shows it letter by letter: no HTML, no link, no formatting, no second line.

    >>> literal("recall@20"), literal("<img src=x>"), literal("a`b|c")
    ('recall@20', '`<img src=x>`', '``a`b\\\\|c``')
    """
    name = printable(name)
    if re.fullmatch(r"[^\W_]([\w@.,+ -]*[^\W_])?", name):
        return name
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", name)), default=0))
    padding = " " if name.startswith("`") or name.endswith("`") else ""
    return f"{fence}{padding}{name}{padding}{fence}".replace("|", "\\|")


def card_data(run: Path, repo: str) -> ModelCardData:
    """The metadata at the head of the card."""
    name = repo.rpartition("/")[2]
    data = data_name(run)
    results = [
        EvalResult(
            task_type="text-retrieval",
            task_name="Retrieval with Boolean queries",
            dataset_type=hub_data(run) or re.sub("[^a-z0-9]+", "-", data.lower()).strip("-") or "local",
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
        tags=[*tags, *(["boolean-queries", "boolbert", "custom_code"] if Run(run).is_bool_bert else ["baseline"])],
        base_model=base_model(run),
        datasets=[dataset] if (dataset := hub_data(run)) else None,
        model_name=name if results else None,
        eval_results=results or None,
    )


def write_card(run: Path, repo: str, folder: Path) -> None:
    """Write README.md."""
    write_readme(folder, card_data(run, repo), card_text(run, repo))


def write_readme(folder: Path, data: ModelCardData, text: str) -> None:
    (folder / "README.md").write_text(f"---\n{data.to_yaml()}\n---\n\n{text}", encoding="utf-8")


def card_text(run: Path, repo: str) -> str:
    boolean, data = Run(run).is_bool_bert, data_name(run)
    file = run / "config_sentence_transformers.json"
    similarity = read_object(file, HubError).get("similarity_fn_name")
    size = read_object(run / "config.json", HubError).get("hidden_size")
    if not isinstance(size, int):
        raise HubError(f"{run / 'config.json'}: field 'hidden_size' must be a whole number, got {shorten(size)}")
    return render(
        "card.md",
        name=repo.rpartition("/")[2],
        repo=repo,
        boolean=boolean,
        trust=", trust_remote_code=True" if boolean else "",
        size=size,
        similarity="dot product" if similarity == "dot" else "cosine",
        paper=PAPER,
        requirements=read_requirements(file),
        results=results_table(run),
        data=data if data == EMBEDDED else literal(data),
    )


def read_requirements(file: Path) -> str:
    """The packages that the model needs, as arguments of pip; they end up in a command that readers copy."""
    found = read_object(file, HubError).get("requirements", {})
    if not isinstance(found, dict):
        raise HubError(
            f"{file}: field 'requirements' must be an object of packages with versions, got {shorten(found)}"
        )
    arguments = []
    for name, version in found.items():
        try:
            requirement = Requirement(f"{name}{version}")
        except InvalidRequirement:
            raise HubError(f"{file}: field 'requirements' holds {shorten(f'{name}{version}')}, no package") from None
        if requirement.url or requirement.marker:
            raise HubError(f"{file}: field 'requirements' must hold names and versions alone, got {shorten(version)}")
        arguments.append(f'"{requirement}"')
    return " ".join(arguments)


def results_table(run: Path) -> str:
    """One table of all sections, metrics as columns."""
    sections = read_metrics(run)
    if not sections:
        return "The run holds no `metrics.json`: nothing was measured."
    names = list(dict.fromkeys(name for metrics in sections.values() for name in metrics))
    rows = [["", *map(literal, names)], ["---"] * (len(names) + 1)]
    for section, metrics in sections.items():
        cells = [f"{metrics[name]:.4g}" if name in metrics else "" for name in names]
        rows.append([SECTIONS.get(section) or literal(section), *cells])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    note = "`violations`: the share of excluded documents among the first results; lower is better."
    return f"{table}\n\n{note}" if "violations" in names else table
