# Copyright 2026 The Bool-BERT authors. All rights reserved.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The document reader as a transformers model: does a text affirm a condition, deny it, or say nothing of it?

`boolbert publish --reader` copies this file next to the weights; nothing of the package is imported.
"""

from typing import ClassVar, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, BertModel, BertPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils.generic import TransformersKwargs, can_return_tuple

LABELS = ("affirms", "denies", "silent")
# Where `trust_remote_code=True` finds the classes.
AUTO_MAP = {
    "AutoConfig": "modeling_document_reader.DocumentReaderConfig",
    "AutoModelForSequenceClassification": "modeling_document_reader.DocumentReaderForSequenceClassification",
}
# What a text without tokens says for and against; finite, as a sum of none would not be.
UNSPOKEN = -1e4


class DocumentReaderConfig(BertConfig):
    """The configuration of a [`DocumentReaderForSequenceClassification`].

    Args (beyond those of `BertConfig`):
        temperature: divides the logits, so that their softmax is calibrated.
    """

    model_type: ClassVar[str] = "bert_document_reader"

    temperature: float = 1.0

    def __post_init__(self, **kwargs):
        labels = {"id2label": dict(enumerate(LABELS)), "label2id": {name: key for key, name in enumerate(LABELS)}}
        super().__post_init__(**{"auto_map": dict(AUTO_MAP), **labels, **kwargs})


class DocumentReaderForSequenceClassification(BertPreTrainedModel):
    """A BERT that reads a condition beside a text, `[CLS] condition [SEP] text [SEP]`.

    Each token of the text says how much speaks for the condition and how much against it; the first token of all, how
    much speaks for silence. What speaks for a label is the logarithm of a sum over tokens.
    """

    config_class = DocumentReaderConfig
    config: DocumentReaderConfig

    def __init__(self, config: DocumentReaderConfig):
        super().__init__(config)
        self.num_labels = len(LABELS)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.classifier = nn.Linear(config.hidden_size, self.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple[Tensor] | SequenceClassifierOutput:
        """token_type_ids: 1 for the text and the [SEP] behind it, as the tokenizer gives them for a pair. labels: (B,)
        numbers of labels, or (B, 3) their shares. Padding stands at the end."""
        if token_type_ids is None:
            raise ValueError("token_type_ids are missing: give the tokenizer the condition and the text as a pair")
        outputs = self.bert(  # the encoder has seen type 0 alone, for both parts
            input_ids,
            attention_mask=attention_mask,
            inputs_embeds=inputs_embeds,
            return_dict=True,
            **kwargs,
        )
        scores = self.classifier(outputs.last_hidden_state).float()  # (B, L, 3)
        second = (token_type_ids if attention_mask is None else token_type_ids * attention_mask) == 1
        of_text = second & F.pad(second[:, 1:], (0, 1))  # the last one is [SEP]
        spoken = scores[..., :2].masked_fill(~of_text.unsqueeze(-1), UNSPOKEN).logsumexp(1)
        logits = torch.cat([spoken, scores[:, 0, 2:]], -1) / self.config.temperature
        return SequenceClassifierOutput(
            loss=None if labels is None else F.cross_entropy(logits, labels),  # type: ignore[arg-type]
            logits=logits,  # type: ignore[arg-type]
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


# Saving a model copies this file next to the weights.
DocumentReaderConfig.register_for_auto_class()
DocumentReaderForSequenceClassification.register_for_auto_class("AutoModelForSequenceClassification")
