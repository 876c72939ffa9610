"""The document reader as one model: the default encoder's weights with the adapters added, and what loads them."""

import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from ..core.errors import HubError
from ..core.files import read_object, write_json
from ..retrieval.adapters import DOCUMENT_READER, encoder_of, open_tokenizer, weights_of
from ..retrieval.document_reader import temperature_of
from ..retrieval.encoders import INSTALL
from ..sentence_boolbert import REQUIREMENTS
from .assemble import licence, published_files
from .modeling_document_reader import DocumentReaderConfig, DocumentReaderForSequenceClassification

READER_CODE = ("hub/modeling_document_reader.py",)
# Of the encoder's configuration: what is said anew.
RENAMED = {"_name_or_path", "architectures", "model_type", "transformers_version"}
# What CrossEncoder saves. `torch.nn.Softmax()` would have no dimension, and warn of that.
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]
TRANSFORMER = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "scores",
}
CROSS_ENCODER = {
    "model_type": "CrossEncoder",
    "activation_fn": "torch.distributions.transforms.SoftmaxTransform",
    "requirements": REQUIREMENTS,
}


def reader_encoder() -> Path:
    """The folder of the encoder that the document reader reads with."""
    if (folder := encoder_of(DOCUMENT_READER)) is None:
        raise HubError(f"the document reader cannot be published without its encoder: {INSTALL}")
    return folder


def assemble_reader(folder: Path) -> list[Path]:
    """Fill `folder` with the document reader: weights, tokenizer, settings, its code and the licence."""
    encoder = reader_encoder()
    settings = read_object(encoder / "config.json", HubError)
    config = DocumentReaderConfig(
        **{name: value for name, value in settings.items() if name not in RENAMED},
        architectures=[DocumentReaderForSequenceClassification.__name__],
        temperature=temperature_of(DOCUMENT_READER),
        dtype="float32",
    )
    config.save_pretrained(folder)  # with the file of its class
    _write_weights(encoder, folder)
    open_tokenizer(encoder).save(str(folder / "tokenizer.json"))
    tokenizer = read_object(encoder / "tokenizer_config.json", HubError)
    tokenizer = {name: value for name, value in tokenizer.items() if name != "name_or_path"}
    longest = {"model_max_length": config.max_position_embeddings}
    write_json(folder / "tokenizer_config.json", tokenizer | longest)
    write_json(folder / "modules.json", MODULES)
    write_json(folder / "sentence_bert_config.json", TRANSFORMER)
    write_json(folder / "config_sentence_transformers.json", CROSS_ENCODER)
    shutil.copyfile(licence(), folder / "LICENSE")
    return published_files(folder)


def _write_weights(encoder: Path, folder: Path) -> None:
    """The adapters' changes are part of the weights, so that a plain BERT computes what the reader does."""
    weights, head, bias = weights_of(encoder, DOCUMENT_READER)
    kept = {f"bert.{name}": value for name, value in weights.items() if name.split(".")[0] != "pooler"}
    kept = {name: value for name, value in kept.items() if not name.endswith("position_ids")}
    kept |= {"classifier.weight": head, "classifier.bias": bias}
    whole = {name: np.ascontiguousarray(value, np.float32) for name, value in kept.items()}
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})
