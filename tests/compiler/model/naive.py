"""The network once more, in float64 and in the plainest words: one position, one head at a time."""

import math

import numpy as np


def norm(x, eps, weight=None):
    y = x / math.sqrt(sum(v * v for v in x) / len(x) + eps)
    return y if weight is None else y * weight


def rotated(x, position, theta, pairs):
    """Pair i is the complex number x[i] + x[i + half] j; it is multiplied by e^(j angle)."""
    half = len(x) // 2
    y = x.copy()
    for i in range(pairs):
        turned = complex(x[i], x[i + half]) * complex(
            math.cos(position * theta ** (-2 * i / len(x))),
            math.sin(position * theta ** (-2 * i / len(x))),
        )
        y[i], y[i + half] = turned.real, turned.imag
    return y


def gelu(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def logits(weights, tokens):
    """Logits [n, vocab] of one sequence."""
    config = weights.config
    embedding = weights.embedding.astype(np.float64)
    stream = [embedding[token] * math.sqrt(config.hidden) for token in tokens]
    for layer, w in zip(config.layers, weights.layers, strict=True):
        d, group = layer.head_dim, layer.heads // layer.kv_heads
        keys, values, after = [], [], []
        for p, x in enumerate(stream):
            h = norm(x, config.eps, w.input_norm)
            raw_k = (w.k.astype(np.float64) @ h).reshape(layer.kv_heads, d)
            raw_v = raw_k if layer.k_eq_v else (w.v.astype(np.float64) @ h).reshape(-1, d)
            keys.append([rotated(norm(k, config.eps, w.k_norm), p, layer.rope_theta,
                                 layer.rope_pairs) for k in raw_k])
            values.append([norm(v, config.eps) for v in raw_v])
            heads = []
            for head, q in enumerate((w.q.astype(np.float64) @ h).reshape(layer.heads, d)):
                q = rotated(norm(q, config.eps, w.q_norm), p, layer.rope_theta, layer.rope_pairs)
                seen = [j for j in range(p + 1) if layer.window is None or j > p - layer.window]
                e = [math.exp(q @ keys[j][head // group]) for j in seen]
                heads.append(sum(a * values[j][head // group] for a, j in zip(e, seen, strict=True))
                             / sum(e))
            x = x + norm(w.o.astype(np.float64) @ np.concatenate(heads), config.eps,
                         w.post_attention_norm)
            h = norm(x, config.eps, w.pre_ffn_norm)
            gate = np.array([gelu(g) for g in w.gate.astype(np.float64) @ h])
            out = w.down.astype(np.float64) @ (gate * (w.up.astype(np.float64) @ h))
            after.append((x + norm(out, config.eps, w.post_ffn_norm)) * w.scalar)
        stream = after
    result = np.array([embedding @ norm(x, config.eps, weights.norm) for x in stream])
    return result if config.softcap is None else config.softcap * np.tanh(result / config.softcap)
