"""What holds for any shape, padding and gate."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

relaxed = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
lengths_of_a_batch = st.lists(st.integers(1, 12), min_size=1, max_size=4)
gates = st.lists(st.integers(0, 1), min_size=3, max_size=3)


def make_batch(lengths, padded_to, seed, vocab_size=64):
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.arange(padded_to) < torch.tensor(lengths)[:, None]).long()
    return torch.randint(1, vocab_size, mask.shape, generator=generator), mask


@pytest.fixture(params=["eager", "sdpa"])
def model(request, lively):
    return lively(attn_implementation=request.param, conv_kernel=5)


@relaxed
@given(lengths=lengths_of_a_batch, more=st.integers(0, 9), seed=st.integers(0, 99), gate=st.none() | gates)
def test_padding_changes_nothing(model, lengths, more, seed, gate):
    """Neither how much padding there is, nor what stands in it."""
    ids, mask = make_batch(lengths, max(lengths), seed)
    other_ids, longer_mask = make_batch(lengths, max(lengths) + more, seed + 1)
    longer_ids = other_ids.clone()
    longer_ids[:, : max(lengths)] = torch.where(mask.bool(), ids, other_ids[:, : max(lengths)])
    operators = None if gate is None else torch.tensor([gate] * len(lengths))
    with torch.no_grad():
        short = model(ids, attention_mask=mask, operators=operators, output_scopes=True)
        long = model(longer_ids, attention_mask=longer_mask, operators=operators, output_scopes=True)
    real = mask.bool()
    assert_close(long.last_hidden_state[:, : max(lengths)][real], short.last_hidden_state[real], atol=1e-5, rtol=1e-4)
    assert_close(long.pooler_output, short.pooler_output, atol=1e-5, rtol=1e-4)
    assert_close(long.gate_logits, short.gate_logits, atol=1e-4, rtol=1e-4)
    assert long.operators.tolist() == short.operators.tolist()
    cue_real = real[:, None].expand(-1, 3, -1)
    assert_close(long.cue_logits[..., : max(lengths)][cue_real], short.cue_logits[cue_real], atol=1e-5, rtol=1e-4)
    for scope in (*long.scopes, *short.scopes):
        padding = torch.arange(scope.shape[-1]) >= torch.tensor(lengths)[:, None]
        assert (scope.permute(0, 3, 1, 2)[padding] == 0).all()


@relaxed
@given(lengths=lengths_of_a_batch, left=st.integers(1, 6), seed=st.integers(0, 99))
def test_padding_may_stand_on_the_left(model, lengths, left, seed):
    """With position ids that count real tokens, as for any BERT."""
    ids, mask = make_batch(lengths, max(lengths), seed)
    pad = torch.full((len(lengths), left), 5)
    positions = torch.cat([torch.zeros_like(pad), torch.arange(max(lengths)).expand_as(ids)], 1)
    with torch.no_grad():
        plain = model(ids, attention_mask=mask)
        shifted = model(torch.cat([pad, ids], 1), attention_mask=torch.cat([pad * 0, mask], 1), position_ids=positions)
    real = mask.bool()
    assert_close(shifted.last_hidden_state[:, left:][real], plain.last_hidden_state[real], atol=1e-5, rtol=1e-4)


@relaxed
@given(lengths=lengths_of_a_batch, seed=st.integers(0, 99), gate=gates)
def test_an_operator_that_is_off_has_no_influence(lively, lengths, seed, gate):
    """Changing every weight of the experts whose gate is off leaves the answer as it is; one that is on changes it."""
    model, other = lively(), lively()
    ids, mask = make_batch(lengths, max(lengths), seed)
    operators = torch.tensor([gate] * len(lengths))

    def run(network):
        with torch.no_grad():
            return network(ids, attention_mask=mask, operators=operators, output_scopes=True, output_biases=True)

    def disturb(experts):
        with torch.no_grad():
            for layer in other.encoder.layer:
                layer.attention.self.bias_predictor.output_bias[experts] += 3.0
                layer.attention.self.scope_predictor.bias[experts] += 1.0

    before, is_on = run(model), torch.tensor(gate).bool()
    disturb(~is_on)
    assert_close(run(other).last_hidden_state, before.last_hidden_state, atol=1e-6, rtol=1e-5)
    disturb(is_on)
    after = run(other)
    # A single token attends to itself alone, whatever the bias.
    if after.scopes[0][:, is_on].any() and max(lengths) > 3 and gate[2]:
        assert not torch.allclose(after.last_hidden_state, before.last_hidden_state, atol=1e-6)


@pytest.mark.parametrize("not_reach", ["outside", "both", "all"])
@pytest.mark.parametrize("on", [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]])
def test_what_is_left_out_because_it_is_off_changes_nothing(lively, batch, on, not_reach):
    """Without gradients, a batch in which all operators are off goes through plain BERT's layers."""
    model = lively(not_reach=not_reach)
    operators = torch.tensor([on] * 3)
    computed = model(**batch, operators=operators).last_hidden_state.detach()
    with torch.no_grad():
        recorded = model(**batch, operators=operators, output_scopes=True)
        assert recorded.scopes[0].shape[1] == 3  # all are recorded, whatever is on
        left_out = model(**batch, operators=operators).last_hidden_state
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(left_out[real], computed[real], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(recorded.last_hidden_state[real], computed[real], atol=1e-5, rtol=1e-4)
    if not any(on):
        with torch.no_grad():
            assert torch.equal(left_out[real], model(**batch, boolean=False).last_hidden_state[real])


def test_operators_outside_of_attention_operators_leave_attention_alone(lively, batch):
    model = lively(attention_operators=["not"])
    with torch.no_grad():
        plain = model(**batch, boolean=False).last_hidden_state
        and_or = model(**batch, operators=torch.tensor([[1, 1, 0]] * 3)).last_hidden_state
        excluding = model(**batch, operators=torch.tensor([[0, 0, 1]] * 3)).last_hidden_state
    real = batch["attention_mask"].bool()
    assert torch.equal(and_or[real], plain[real])
    assert not torch.allclose(excluding[real], plain[real], atol=1e-3)
