"""Bool-BERT: BERT with Boolean-aware attention.

The model names load torch when they are first used, so that `boolbert.boolean` and `boolbert.data` stay light.
Importing this package also makes `AutoConfig`, `AutoModel` and `AutoModelForPreTraining` know "boolbert".
"""

__version__ = "0.1.0"
