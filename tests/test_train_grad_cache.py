"""Loss and gradients of a step: against plain autograd, in any number of parts, with and without dropout."""

import pytest
import torch
import training_helpers as helpers

from boolbert.train.dual_encoder import contrastive_loss
from boolbert.train.grad_cache import reseed


def slow_loss(stage, batch):
    """One query and one document at a time, then a sum written out."""
    model, temperature = stage.model, stage.temperature
    queries = [model("query", _row(stage.queries["train"], q, stage.operators["train"][[q]])) for q in batch.queries]
    documents = [model("document", _row(stage.documents, d)) for d in batch.documents()]
    total = 0.0
    for i, query in enumerate(queries):
        gold = set(stage.data.train.gold[int(batch.queries[i])].tolist())
        scores = {j: (query * document).sum() / temperature for j, document in enumerate(documents)}
        kept = [score for j, score in scores.items() if j == i or int(batch.documents()[j]) not in gold]
        total = total - scores[i] + torch.stack(kept).exp().sum().log()
    return total / len(queries)


def _row(tokens, row, operators=None):
    inputs = tokens.batch([row])
    return inputs if operators is None else {**inputs, "operators": operators}


def gradients_in(model):
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("size", [None, 7, 2])
@pytest.mark.parametrize("changes", [{}, {"similarity": "cosine", "pooling": "mean"}, {"negatives": "violating"}])
def test_loss_and_gradients_are_those_of_plain_autograd(still, accelerator, size, changes):
    stage = helpers.quest_stage(still, accelerator, mini_batch_size=size, **changes)
    losses, gradients = helpers.gradients_of(stage, accelerator, epoch=1, step=2)
    stage.model.zero_grad()
    loss = slow_loss(stage, stage.sampler.batch(1, 2))
    loss.backward()
    assert losses["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
    assert not any("query.gate." in name for name in gradients)  # the gate was given, so it learns nothing
    helpers.assert_same(gradients, gradients_in(stage.model))


def test_a_part_draws_the_same_dropout_and_gumbel_noise_both_times(folder, accelerator):
    stage = helpers.quest_stage(folder, accelerator, mini_batch_size=3)
    stage.model.train()  # noise and all
    batch = stage.load(0, 1)
    _, gradients = helpers.gradients_of(stage, accelerator)
    stage.model.zero_grad()
    vectors = []
    for side, (name, parts) in enumerate((("query", batch["queries"]), ("document", batch["documents"]))):
        for number, part in enumerate(parts):
            reseed(0, 1, 0, side, number)
            vectors.append(stage.model(name, part))
    queries, documents = torch.cat(vectors[: len(batch["queries"])]), torch.cat(vectors[len(batch["queries"]) :])
    queries, documents = queries[batch["query_index"]], documents[batch["document_index"]]
    loss = contrastive_loss(queries, documents, batch["targets"], batch["excluded"])
    loss.backward()
    helpers.assert_same(gradients, gradients_in(stage.model))


def test_pretraining_in_parts_gives_the_whole_batch_s_loss_and_gradients(still, accelerator):
    whole = helpers.pretraining_stage(still, accelerator, batch_size=7)
    drawn = whole.load(0, 0)["parts"][0]["triplets"]

    def slow_loss():
        """The model's own loss over the whole batch, and the scope loss of the reader once more."""
        outputs = whole.bert(**drawn)
        mask = drawn["attention_mask"].bool().unsqueeze(1)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            outputs.scope_logits, drawn["scope_labels"].float(), reduction="none"
        )
        return outputs.loss + (losses * mask).sum() / (mask.sum() * 3)

    loss = float(slow_loss().detach())
    for size in (None, 6):
        stage = helpers.pretraining_stage(still, accelerator, batch_size=7, mini_batch_size=size)
        losses, gradients = helpers.gradients_of(stage, accelerator, step=0)
        assert losses["loss"] == pytest.approx(loss, rel=1e-5)
        whole.model.zero_grad()
        slow_loss().backward()
        helpers.assert_same(
            gradients, {name: p.grad for name, p in whole.model.named_parameters() if p.grad is not None}
        )


def test_frozen_documents_are_compared_with_the_whole_corpus_and_get_no_gradient(folder, accelerator):
    stage = helpers.quest_stage(folder, accelerator, freeze_documents=True)
    before = stage.frozen.clone()
    _, gradients = helpers.gradients_of(stage, accelerator)
    assert all(name.startswith("query.") for name in gradients)
    batch = stage.load(0, 1)
    assert len(batch["columns"]) == len(stage.corpus)
    gold = stage.data.train.gold
    for row, query in enumerate(stage.sampler.batch(0, 1).queries):
        target = int(batch["columns"][batch["targets"][row]])
        excluded = set(batch["columns"][batch["excluded"][row]].tolist())
        assert target in gold[int(query)]
        assert excluded == set(gold[int(query)].tolist()) - {target}
    assert torch.equal(stage.frozen, before)
    few = helpers.quest_stage(folder, accelerator, freeze_documents=True, corpus_negatives=4)
    assert len(few.load(0, 1)["columns"]) == 5 * (1 + 3) + 4
    assert torch.equal(few.load(0, 1)["columns"], few.load(0, 1)["columns"])
