"""A tiny dual encoder for the tests of the sentence-transformers and Hub parts."""

from boolbert.sentence_boolbert import save_dual_encoder

QUERIES = [
    "films set in a but not b",
    "c",
    "books about a or b",
    "a as well as b or c but not films about war",
    "a and b",
]
OPERATORS = [["not"], [], ["or"], ["and", "or", "not"], ["and"]]
DOCUMENTS = ["films about war", "books", "a and b and c", "films set in a", "war or b"]


def plain_bert(lively, tiny_config, seed=1):
    """A BERT of the tiny size whose weights are large enough to be felt."""
    import torch
    from transformers import BertConfig, BertModel

    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    sizes = {name: getattr(tiny_config, name) for name in (*names, "max_position_embeddings")}
    torch.manual_seed(seed)
    model = BertModel(BertConfig(**sizes))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.normal_(std=0.3)
    return model.eval()


def write_dual(path, lively, tiny_config, tokenizer, pooling="mean", similarity="cosine", **settings):
    """A Bool-BERT and a BERT, saved with two doors; returns both."""
    query, document = lively(pooling=pooling, **settings), plain_bert(lively, tiny_config)
    save_dual_encoder(path, query, document, tokenizer, pooling=pooling, similarity=similarity)
    return query, document


def embed(model, tokenizer, texts, pooling, similarity, **kwargs):
    """Sentence vectors the slow way: one text at a time, pooled and normalised by hand."""
    import torch

    rows = []
    for index, text in enumerate(texts):
        batch = tokenizer(text, return_tensors="pt")
        extra = {name: value[index : index + 1] for name, value in kwargs.items()}
        with torch.no_grad():
            output = model(**batch, **extra)
        states = output.last_hidden_state[0]
        if model.config.model_type == "boolbert":  # it composes; test_formulas.py has that from loops
            vector = output.sentence_embedding[0]
        else:
            vector = states[0] if pooling == "cls" else states.mean(0)
        rows.append(vector / vector.norm() if similarity == "cosine" else vector)
    return torch.stack(rows).numpy()
