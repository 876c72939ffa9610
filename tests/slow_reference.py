"""Every formula of Bool-BERT once more, token by token, straight from the paper and the decided open points.

Nothing here shares code with the model: it reads the weights, takes the experts apart and computes with small vectors.
"""

import itertools
import math

import torch
from torch.nn.functional import gelu, layer_norm, softplus

AND, OR, NOT = 0, 1, 2


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.double)


def indices(*sizes):
    return itertools.product(*map(range, sizes))


def linear(module, vector):
    return module.weight @ vector + module.bias


def heard(mask, i, kernel, dilation=1):
    """The taps of a convolution at token i with the tokens that they hear: real ones alone."""
    pairs = ((k, i + (k - kernel // 2) * dilation) for k in range(kernel))
    return [(k, j) for k, j in pairs if 0 <= j < len(mask) and mask[j]]


@torch.no_grad()
def cue_logits(module, hidden, operators, mask, activation=gelu):
    """p's logits (B, E, L): W_c act(H + context + W_o o_e + b_o) + b_c."""
    out = zeros(len(hidden), 3, hidden.shape[1])
    for b, e, i in indices(*out.shape):
        features = hidden[b, i] + linear(module.operator_projection, operators[e])
        if module.has_context:
            features += module.context.bias
            for k, j in heard(mask[b], i, module.context.weight.shape[-1]):
                features += module.context.weight[:, :, k] @ linear(module.context_projection, hidden[b, j])
        out[b, e, i] = module.score.weight[0] @ activation(features) + module.score_bias
    return out


@torch.no_grad()
def gate_logits(module, hidden, mask, temperature):
    """FFN of the mean over real tokens, divided by the temperature: (B, E)."""
    means = [states[real].mean(0) for states, real in zip(hidden, mask.bool(), strict=True)]
    return torch.stack([linear(module.output, gelu(linear(module.dense, mean))) / temperature for mean in means])


@torch.no_grad()
def reader_logits(module, hidden, cue_probs, mask):
    """Dilated convolutions with a residual each, over [H; p]: (B, E, L)."""
    out = zeros(len(hidden), 3, hidden.shape[1])
    tokens = range(hidden.shape[1])
    for b in range(len(hidden)):
        rows = [linear(module.dense, hidden[b, i]) + cue_probs[b, :, i] @ module.cue_weight for i in tokens]
        for depth, (norm, conv) in enumerate(zip(module.norms, module.convolutions, strict=True)):
            normal = [layer_norm(row, row.shape, norm.weight, norm.bias, norm.eps) for row in rows]
            for i in tokens:
                taps = heard(mask[b], i, 3, 2**depth)
                rows[i] = rows[i] + gelu(conv.bias + sum(conv.weight[:, :, k] @ normal[j] for k, j in taps))
        for i in tokens:
            out[b, :, i] = module.output.weight @ rows[i] + module.output_bias
    return out


@torch.no_grad()
def scope(module, hidden, cue_probs, operators, mask, reader=None):
    """1[sigmoid(FiLM(Conv1D_e([H; p_e])) + what the reader says) > theta_e], and padding never: (B, E, heads, L)."""
    kernel, _, heads = module.cue_weight.shape
    # The packed weights taken apart into one Conv1D per operator: weight[tap][e][head][channel].
    context = module.context.weight.view(kernel, 3, heads, -1)
    out = zeros(len(hidden), 3, heads, hidden.shape[1])
    for b, e, i in indices(len(hidden), 3, hidden.shape[1]):
        total = module.bias[e].clone()
        for k, j in heard(mask[b], i, kernel):
            total += context[k, e] @ hidden[b, j] + module.cue_weight[k, e] * cue_probs[b, e, j]
        scale, shift = linear(module.film.modulation, operators[e]).chunk(2)
        read = 0 if reader is None else reader[b, e, i]
        probability = torch.sigmoid((1 + scale) * total + shift + read)
        out[b, e, :, i] = mask[b, i] * (probability > module.threshold[e])
    return out


def position_weight(cues, operator, i, sigma, window):
    """w(r_i): the Gaussian of the distance to the nearest cue that reaches token i, 0 if none does."""
    places = [c for c, is_cue in enumerate(cues) if is_cue]
    distances = [i - c for c in places if i >= c] if operator == NOT else [min(abs(i - c), window) for c in places]
    return math.exp(-(min(distances) ** 2) / (2 * sigma**2)) if distances else 0.0


@torch.no_grad()
def bias(module, hidden, cues, operators, window):
    """softplus(FFN_e([H; w(r_e)]) * sigmoid(W_op o_e)): (B, E, heads, L)."""
    _, inner_size, heads = module.output_weight.shape
    dense_weight = module.dense.weight.view(3, inner_size, -1)
    dense_bias = module.dense.bias.view(3, inner_size)
    out = zeros(len(hidden), 3, heads, hidden.shape[1])
    for b, e, i in indices(len(hidden), 3, hidden.shape[1]):
        w = position_weight(cues[b, e].tolist(), e, i, module.sigma[e].item(), window)
        inner = gelu(dense_weight[e] @ hidden[b, i] + module.position_weight[e] * w + dense_bias[e])
        modulation = torch.sigmoid(module.operator_gate.weight @ operators[e])
        out[b, e, :, i] = softplus((inner @ module.output_weight[e] + module.output_bias[e]) * modulation)
    return out


def boolean_bias(scopes, biases, gate, not_reach="outside"):
    """The dense S_and + S_or - S_not that the fast path never builds: (B, heads, L, L)."""
    batch, _, heads, length = scopes.shape
    out = zeros(batch, heads, length, length)
    for b, h, i, j in indices(*out.shape):
        strength = gate[b] * biases[b, :, h, j]
        strengthened = (scopes[b, :, h, i] * scopes[b, :, h, j] * strength)[[AND, OR]].sum()
        row, column = bool(scopes[b, NOT, h, i]), bool(scopes[b, NOT, h, j])
        weakened = {"all": column, "outside": column and not row, "both": column != row}[not_reach]
        out[b, h, i, j] = strengthened - weakened * strength[NOT]
    return out


def attention(query, key, value, bias_matrix, mask):
    """softmax(Q K^T / sqrt(d) + S) V over real tokens: the output and the weights."""
    batch, heads, length, size = query.shape
    weights = zeros(batch, heads, length, length)
    for b, h, i in indices(batch, heads, length):
        real = mask[b].bool()
        scores = key[b, h, real] @ query[b, h, i] / math.sqrt(size) + bias_matrix[b, h, i, real]
        weights[b, h, i, real] = scores.exp() / scores.exp().sum()
    return weights @ value, weights


def exclude(wanted, excluded, weight):
    """A - l (B - (A.B) A) for unit vectors, made as long as A was."""
    a, b = wanted / wanted.norm(), excluded / excluded.norm()
    vector = a - weight * (b - (a @ b) * a)
    return vector / vector.norm() * wanted.norm()


def query_vectors(hidden, mask, scope, pooling, weight, branches):
    """The sentence's own vector and its alternatives', a list of vectors for each sentence."""
    out = []
    for states, real, reached in zip(hidden, mask, scope, strict=True):
        tokens = [i for i, is_real in enumerate(real) if is_real]
        inside = [i for i in tokens if reached[NOT, i]]
        outside = [i for i in tokens if i not in inside]
        if not inside or not outside:
            inside, outside = [], tokens
        runs = []
        for i in outside:
            if reached[OR, i]:
                if not runs or i != runs[-1][-1] + 1:
                    runs.append([])
                runs[-1].append(i)
        alternatives = [states[run].mean(0) for run in runs[:branches]] if len(runs) > 1 else []
        vectors = [states[0] if pooling == "cls" else states[outside].mean(0), *alternatives]
        if inside:
            vectors = [exclude(vector, states[inside].mean(0), weight) for vector in vectors]
        out.append(torch.stack(vectors))
    return out
