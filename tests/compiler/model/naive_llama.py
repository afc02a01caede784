"""Llama once more, in float64 and in the plainest words, with pairs (2 i, 2 i + 1) of Q and K."""

import math

import numpy as np

from tests.compiler.model.naive import norm


def turned(x, position, theta):
    """Neighbours x[2 i], x[2 i + 1] are a complex number; it is multiplied by e^(j angle)."""
    z = x[::2] + 1j * x[1::2]
    for i in range(len(z)):
        z[i] *= complex(math.cos(position * theta ** (-2 * i / len(x))),
                        math.sin(position * theta ** (-2 * i / len(x))))
    return np.stack([z.real, z.imag], axis=1).reshape(-1)


def logits(get, config, tokens):
    """Logits [n, vocab]; ``get`` gives the tensors by paths as "embedding" or "1.q"."""
    def matrix(path):
        return np.asarray(get(path), np.float64)

    layer = config.layers[0]
    d, group, theta = layer.head_dim, layer.heads // layer.kv_heads, layer.rope_theta
    stream = [matrix("embedding")[token] for token in tokens]
    for index in range(len(config.layers)):
        keys, values, after = [], [], []
        for position, x in enumerate(stream):
            h = norm(x, config.eps, matrix(f"{index}.input_norm"))
            keys.append([turned(k, position, theta)
                         for k in (matrix(f"{index}.k") @ h).reshape(-1, d)])
            values.append((matrix(f"{index}.v") @ h).reshape(-1, d))
            heads = []
            for head, q in enumerate((matrix(f"{index}.q") @ h).reshape(-1, d)):
                q = turned(q, position, theta)
                e = [math.exp(q @ k[head // group] / math.sqrt(d)) for k in keys]
                heads.append(sum(a * v[head // group] for a, v in zip(e, values, strict=True))
                             / sum(e))
            x = x + matrix(f"{index}.o") @ np.concatenate(heads)
            h = norm(x, config.eps, matrix(f"{index}.pre_ffn_norm"))
            gate = matrix(f"{index}.gate") @ h
            gate = gate / (1 + np.exp(-gate))
            after.append(x + matrix(f"{index}.down") @ (gate * (matrix(f"{index}.up") @ h)))
        stream = after
    head = matrix("embedding") if config.tied else matrix("untied")
    return np.array([head @ norm(x, config.eps, matrix("norm")) for x in stream])
