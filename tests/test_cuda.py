"""What only a GPU can show: the fast kernels take Bool-BERT as it is."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from boolbert import BoolBertForPreTraining
from boolbert.retrieval.neighbours import DOCUMENT_BLOCK, block_size, top_k

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

OPERATORS = [[1, 0, 1], [0, 1, 0], [1, 1, 1]]


def states(model, batch):
    inputs = {name: value.to("cuda") for name, value in batch.items()}
    with torch.no_grad():
        out = model(**inputs, operators=torch.tensor(OPERATORS, device="cuda"))
    return out.last_hidden_state[inputs["attention_mask"].bool()].float().cpu()


def test_a_fused_kernel_takes_the_boolean_columns(lively, batch):
    """The columns fit into a head of a size that PyTorch's memory-efficient kernel takes, padding and all."""
    model = lively(std=0.1)
    expected = states(model.to("cuda"), batch)
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        got = states(model.to(torch.bfloat16), batch)
    assert torch.cosine_similarity(got, expected).median() > 0.99


@pytest.mark.parametrize("gate", ["learned", "cue"])
def test_torch_compile(lively, batch, gate):
    model = lively(gate=gate).to("cuda")
    assert_close(states(torch.compile(model, fullgraph=True), batch), states(model, batch), atol=1e-4, rtol=1e-3)


def test_the_same_answer_as_on_the_cpu(lively, batch):
    model = lively()
    with torch.no_grad():
        expected = model(**batch, operators=torch.tensor(OPERATORS)).last_hidden_state
    real = batch["attention_mask"].bool()
    assert_close(states(model.to("cuda"), batch), expected[real], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_training_step_in_mixed_precision(lively, batch, dtype):
    model = lively(BoolBertForPreTraining).to("cuda").train()
    inputs = {name: value.to("cuda") for name, value in batch.items()}
    labels = torch.tensor(OPERATORS, device="cuda")
    with torch.autocast("cuda", dtype=dtype):
        loss = model(**inputs, gate_labels=labels, triplets=torch.tensor([[0, 1, 2]], device="cuda")).loss
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("queries", [1, 40])
def test_a_search_on_the_gpu_finds_what_the_cpu_finds(queries):
    """In blocks that are larger than on a CPU, the last one a short one."""
    generator = torch.Generator().manual_seed(0)
    documents = torch.randint(-3, 4, (300_000, 16), generator=generator).float()  # many ties
    asked = torch.randint(-3, 4, (queries, 16), generator=generator).float()
    assert block_size(asked.cuda(), documents.cuda()) > DOCUMENT_BLOCK == block_size(asked, documents)
    scores, rows = top_k(asked, documents.cuda(), 20, device="cuda")
    expected_scores, expected_rows = top_k(asked, documents, 20, device="cpu")
    assert (scores == expected_scores).all()
    assert (rows == expected_rows).all()
