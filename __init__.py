"""Bool-BERT: BERT with Boolean-aware attention.

The models need torch and transformers, which take seconds to import; `boolbert.boolean` and `boolbert.data` need
neither. So the names below are loaded when they are first used. Using one of them, or importing this package after
transformers' Auto classes, makes `AutoConfig`, `AutoModel` and `AutoModelForPreTraining` know "boolbert".
"""

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .configuration_boolbert import OPERATORS, BoolBertConfig
    from .modeling_boolbert import BoolBertForPreTraining, BoolBertModel, BoolBertOutput
    from .search.obey import obey
    from .search.query_reader import read
    from .search.saying import says
    from .train.upgrade import upgrade

__version__ = "0.1.0"
__all__ = [
    "OPERATORS",
    "BoolBertConfig",
    "BoolBertForPreTraining",
    "BoolBertForRetrieval",
    "BoolBertModel",
    "BoolBertOutput",
    "obey",
    "read",
    "register",
    "says",
    "upgrade",
]

_HOMES = {
    "configuration_boolbert": ("OPERATORS", "BoolBertConfig"),
    "modeling_boolbert": ("BoolBertForPreTraining", "BoolBertForRetrieval", "BoolBertModel", "BoolBertOutput"),
    "search.obey": ("obey",),
    "search.query_reader": ("read",),
    "search.saying": ("says",),
    "train.upgrade": ("upgrade",),
}


def register() -> None:
    """Make transformers' Auto classes know Bool-BERT, so that its checkpoints load without `trust_remote_code`."""
    from transformers import AutoConfig, AutoModel, AutoModelForPreTraining

    from .configuration_boolbert import BoolBertConfig
    from .modeling_boolbert import BoolBertForPreTraining, BoolBertModel

    AutoConfig.register(BoolBertConfig.model_type, BoolBertConfig, exist_ok=True)
    AutoModel.register(BoolBertConfig, BoolBertModel, exist_ok=True)
    AutoModelForPreTraining.register(BoolBertConfig, BoolBertForPreTraining, exist_ok=True)


def __getattr__(name: str):
    for module, names in _HOMES.items():
        if name in names:
            if module.endswith("_boolbert"):
                register()
            globals()[name] = getattr(importlib.import_module(f".{module}", __name__), name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Under another name, such as that of a checkout's folder, this is no package that could be registered.
if __name__ == "boolbert" and "transformers.models.auto.configuration_auto" in sys.modules:
    register()
