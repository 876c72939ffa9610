"""Every formula of Bool-BERT once more, written with loops straight from the paper and the decided open points.

Nothing here shares code with the model: it reads the weights, takes the experts apart and computes number by number.
"""

import math

import torch

AND, OR, NOT = 0, 1, 2


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def linear(weight, bias, vector):
    """W x + b, row by row."""
    rows = []
    for r in range(len(weight)):
        total = 0.0 if bias is None else bias[r].item()
        for w, x in zip(weight[r].tolist(), vector, strict=True):
            total += w * x
        rows.append(total)
    return rows


def neighbours(module, hidden, mask, i):
    """What token i hears from the tokens around it: a convolution over their narrow projections, (D,)."""
    if not module.has_context:
        return None
    out = module.context.bias.tolist()
    kernel = module.context.weight.shape[-1]
    for k in range(kernel):
        j = i + k - kernel // 2
        if 0 <= j < len(hidden) and mask[j]:
            narrow = linear(module.context_projection.weight, module.context_projection.bias, hidden[j].tolist())
            for d, heard in enumerate(linear(module.context.weight[:, :, k], None, narrow)):
                out[d] += heard
    return out


def cue_logits(module, hidden, operators, mask, activation=gelu):
    """p's logits (B, E, L): W_c act(H + context + W_o o_e + b_o) + b_c."""
    batch, length, size = hidden.shape
    out = torch.zeros(batch, 3, length, dtype=torch.double)
    context = [[neighbours(module, hidden[b], mask[b], i) for i in range(length)] for b in range(batch)]
    for b in range(batch):
        for e in range(3):
            shift = linear(module.operator_projection.weight, module.operator_projection.bias, operators[e].tolist())
            for i in range(length):
                total = module.score_bias.item()
                for d in range(size):
                    feature = float(hidden[b, i, d]) + shift[d]
                    if module.has_context:
                        feature += context[b][i][d]
                    total += module.score.weight[0, d].item() * activation(feature)
                out[b, e, i] = total
    return out


def gate_logits(module, hidden, mask, temperature):
    """FFN of the mean over real tokens, divided by the temperature: (B, E)."""
    rows = []
    for b in range(hidden.shape[0]):
        real = [i for i in range(hidden.shape[1]) if mask[b, i]]
        mean = [sum(float(hidden[b, i, d]) for i in real) / len(real) for d in range(hidden.shape[2])]
        inner = [gelu(x) for x in linear(module.dense.weight, module.dense.bias, mean)]
        rows.append([x / temperature for x in linear(module.output.weight, module.output.bias, inner)])
    return torch.tensor(rows, dtype=torch.double)


def layer_norm(module, vector):
    mean = sum(vector) / len(vector)
    variance = sum((x - mean) ** 2 for x in vector) / len(vector)
    normal = [(x - mean) / math.sqrt(variance + module.eps) for x in vector]
    return [w * x + b for w, x, b in zip(module.weight.tolist(), normal, module.bias.tolist(), strict=True)]


def reader_logits(module, hidden, cue_probs, mask):
    """Dilated convolutions with a residual each, over [H; p]: (B, E, L)."""
    batch, length, _ = hidden.shape
    out = torch.zeros(batch, 3, length, dtype=torch.double)
    for b in range(batch):
        rows = []
        for i in range(length):
            cues = [
                sum(float(cue_probs[b, e, i]) * w for e, w in enumerate(column))
                for column in module.cue_weight.T.tolist()
            ]
            dense = linear(module.dense.weight, module.dense.bias, hidden[b, i].tolist())
            rows.append([x + cue for x, cue in zip(dense, cues, strict=True)])
        for depth, (norm, conv) in enumerate(zip(module.norms, module.convolutions, strict=True)):
            seen = [layer_norm(norm, row) if mask[b, i] else [0.0] * len(row) for i, row in enumerate(rows)]
            updated = []
            for i in range(length):
                total = conv.bias.tolist()
                for k in range(3):
                    j = i + (k - 1) * 2**depth
                    if 0 <= j < length:
                        total = [t + x for t, x in zip(total, linear(conv.weight[:, :, k], None, seen[j]), strict=True)]
                updated.append([x + gelu(t) for x, t in zip(rows[i], total, strict=True)])
            rows = updated
        for i in range(length):
            for e, x in enumerate(linear(module.output.weight, module.output_bias, rows[i])):
                out[b, e, i] = x
    return out


def scope_probabilities(module, hidden, cue_probs, operators, mask, reader=None):
    """sigmoid(FiLM(Conv1D_e([H; p_e])) + what the reader says): (B, E, heads, L)."""
    batch, length, size = hidden.shape
    kernel, _, heads = module.cue_weight.shape
    # The packed weights taken apart into one Conv1D per operator: weight[e][head][channel][tap].
    context = module.context.weight.view(kernel, 3, heads, size)
    out = torch.zeros(batch, 3, heads, length, dtype=torch.double)
    for e in range(3):
        modulation = linear(module.film.modulation.weight, module.film.modulation.bias, operators[e].tolist())
        scale, shift = modulation[:heads], modulation[heads:]
        for b in range(batch):
            for h in range(heads):
                for i in range(length):
                    total = module.bias[e, h].item()
                    for k in range(kernel):
                        j = i + k - kernel // 2
                        if not (0 <= j < length and mask[b, j]):
                            continue
                        channels = [*hidden[b, j].tolist(), float(cue_probs[b, e, j])]
                        weights = [*context[k, e, h].tolist(), module.cue_weight[k, e, h].item()]
                        total += sum(w * x for w, x in zip(weights, channels, strict=True))
                    read = 0.0 if reader is None else float(reader[b, e, i])
                    out[b, e, h, i] = sigmoid((1 + scale[h]) * total + shift[h] + read)
    return out


def scope(module, hidden, cue_probs, operators, mask, reader=None):
    """1[P > theta_e], and padding never: (B, E, heads, L)."""
    probabilities = scope_probabilities(module, hidden, cue_probs, operators, mask, reader)
    out = torch.zeros_like(probabilities)
    for b, e, h, i in torch.cartesian_prod(*[torch.arange(n) for n in out.shape]).tolist():
        out[b, e, h, i] = float(bool(mask[b, i]) and float(probabilities[b, e, h, i]) > module.threshold[e].item())
    return out


def position_weight(cues, operator, i, sigma, window):
    """w(r_i): the Gaussian of the distance to the nearest cue that reaches token i, 0 if none does."""
    distances = []
    for c, is_cue in enumerate(cues):
        if not is_cue:
            continue
        if operator == NOT:
            if i >= c:
                distances.append(i - c)
        else:
            distances.append(min(abs(i - c), window))
    if not distances:
        return 0.0
    return math.exp(-(min(distances) ** 2) / (2 * sigma**2))


def bias(module, hidden, cues, operators, window):
    """softplus(FFN_e([H; w(r_e)]) * sigmoid(W_op o_e)): (B, E, heads, L)."""
    batch, length, size = hidden.shape
    _, inner_size, heads = module.output_weight.shape
    dense_weight = module.dense.weight.view(3, inner_size, size)
    dense_bias = module.dense.bias.view(3, inner_size)
    out = torch.zeros(batch, 3, heads, length, dtype=torch.double)
    for e in range(3):
        modulation = [sigmoid(x) for x in linear(module.operator_gate.weight, None, operators[e].tolist())]
        # The expert's first layer over D + 1 inputs, its second over its hidden units.
        first = torch.cat([dense_weight[e], module.position_weight[e][:, None]], 1)
        second = module.output_weight[e].T
        for b in range(batch):
            for i in range(length):
                w = position_weight(cues[b, e].tolist(), e, i, module.sigma[e].item(), window)
                inner = [gelu(x) for x in linear(first, dense_bias[e], [*hidden[b, i].tolist(), w])]
                for h, x in enumerate(linear(second, module.output_bias[e], inner)):
                    out[b, e, h, i] = softplus(x * modulation[h])
    return out


def boolean_bias(scopes, biases, gate, not_reach="outside"):
    """The dense S_and + S_or - S_not that the fast path never builds: (B, heads, L, L)."""
    batch, _, heads, length = scopes.shape
    out = torch.zeros(batch, heads, length, length, dtype=torch.double)
    for b in range(batch):
        for h in range(heads):
            for i in range(length):
                for j in range(length):
                    total = 0.0
                    for e in (AND, OR):
                        pair = scopes[b, e, h, i] * scopes[b, e, h, j]
                        total += float(gate[b, e] * pair * biases[b, e, h, j])
                    row, column = bool(scopes[b, NOT, h, i]), bool(scopes[b, NOT, h, j])
                    weakened = {"all": column, "outside": column and not row, "both": column != row}[not_reach]
                    total -= float(gate[b, NOT] * biases[b, NOT, h, j]) if weakened else 0.0
                    out[b, h, i, j] = total
    return out


def attention(query, key, value, bias_matrix, mask):
    """softmax(Q K^T / sqrt(d) + S) V over real tokens: the output and the weights."""
    batch, heads, length, size = query.shape
    weights = torch.zeros(batch, heads, length, length, dtype=torch.double)
    output = torch.zeros(batch, heads, length, size, dtype=torch.double)
    for b in range(batch):
        for h in range(heads):
            for i in range(length):
                scores = {}
                for j in range(length):
                    if mask[b, j]:
                        dot = sum(float(query[b, h, i, d]) * float(key[b, h, j, d]) for d in range(size))
                        scores[j] = dot / math.sqrt(size) + float(bias_matrix[b, h, i, j])
                top = max(scores.values())
                total = sum(math.exp(score - top) for score in scores.values())
                for j, score in scores.items():
                    weights[b, h, i, j] = math.exp(score - top) / total
                    for d in range(size):
                        output[b, h, i, d] += float(weights[b, h, i, j]) * float(value[b, h, j, d])
    return output, weights


def mean(rows):
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def unit(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def exclude(wanted, excluded, weight):
    """A - l (B - (A.B) A) for unit vectors, made as long as A was."""
    a, b = unit(wanted), unit(excluded)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    vector = unit([x - weight * (y - dot * x) for x, y in zip(a, b, strict=True)])
    length = math.sqrt(sum(x * x for x in wanted))
    return [x * length for x in vector]


def query_vectors(hidden, mask, scope, pooling, weight, branches):
    """The sentence's own vector and its alternatives', a list of vectors for each sentence."""
    out = []
    for states, real, reached in zip(hidden.tolist(), mask.tolist(), scope.tolist(), strict=True):
        tokens = [i for i, is_real in enumerate(real) if is_real]
        inside = [i for i in tokens if reached[NOT][i]]
        outside = [i for i in tokens if i not in inside]
        if not inside or not outside:
            inside, outside = [], tokens
        excluded = mean([states[i] for i in inside]) if inside else None
        wanted = states[0] if pooling == "cls" else mean([states[i] for i in outside])
        runs, last = [], None
        for i in outside:
            if reached[OR][i]:
                if last is None or i != last + 1:
                    runs.append([])
                runs[-1].append(states[i])
                last = i
        alternatives = [mean(run) for run in runs[:branches]] if len(runs) > 1 else []
        out.append(
            [vector if excluded is None else exclude(vector, excluded, weight) for vector in [wanted, *alternatives]]
        )
    return out
