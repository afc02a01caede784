"""Reads llama2.c's files and runs them in NumPy, from the description of the format alone.

Shares nothing with :mod:`models.llama2c`, which writes them, nor with the compiler, so that
each is a check of the other. What it does is what run.c of llama2.c does.
"""

import heapq
import struct
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

#: Added to the mean square in every RMSNorm; the format has no place for it.
EPS = np.float32(1e-5)
#: Tokens that begin and end a text, and that of byte 0.
BOS, EOS, FIRST_BYTE = 1, 2, 3


class Tokenizer:
    """A tokenizer.bin.

    Parameters
    ----------
    content : bytes
    vocab : int
        Number of tokens, which the file does not say.
    """

    def __init__(self, content, vocab):
        self.pieces, self.scores, at = [], [], 4
        for _ in range(vocab):
            score, size = struct.unpack_from("<fi", content, at)
            self.pieces.append(content[at + 8 : at + 8 + size])
            self.scores.append(score)
            at += 8 + size
        if at != len(content):
            raise ValueError(f"tokenizer.bin has {len(content) - at} bytes behind {vocab} tokens")
        (self.longest,) = struct.unpack_from("<i", content)
        self._number = {piece: number for number, piece in enumerate(self.pieces)}

    def encode(self, text):
        """Tokens of a text, the begin token first.

        A text that is not empty gets a space in front. Its characters, or their bytes, are
        merged two by two, always those whose merged piece has the highest score, of equal ones
        the first.
        """
        tokens = [self._number[b" "]] if text else []
        for character in map(str.encode, text):
            known = self._number.get(character)
            tokens += [FIRST_BYTE + byte for byte in character] if known is None else [known]
        following = [*range(1, len(tokens)), None]
        preceding = [None, *range(len(tokens) - 1)]
        queue = []

        def offer(left, right):
            if left is None or right is None:
                return
            merged = self._number.get(self.pieces[tokens[left]] + self.pieces[tokens[right]])
            if merged is not None:
                pair = (tokens[left], tokens[right])
                heapq.heappush(queue, (-self.scores[merged], left, right, pair, merged))

        for left, right in pairwise(range(len(tokens))):
            offer(left, right)
        while queue:
            _, left, right, pair, merged = heapq.heappop(queue)
            if (tokens[left], tokens[right]) != pair:
                continue                                    # one of them was merged meanwhile
            tokens[left], tokens[right] = merged, None
            following[left] = following[right]
            if following[left] is not None:
                preceding[following[left]] = left
            offer(preceding[left], left)
            offer(left, following[left])
        return [BOS, *(token for token in tokens if token is not None)]

    def decode(self, tokens):
        """Text of tokens: a space right behind the begin token is left out, as is that token."""
        text, previous = b"", None
        for token in tokens:
            piece = self.pieces[token]
            if FIRST_BYTE <= token < FIRST_BYTE + 256:
                piece = bytes([token - FIRST_BYTE])
            if previous == BOS and piece.startswith(b" "):
                piece = piece[1:]
            if token not in (BOS, EOS):
                text += piece
            previous = token
        return text.decode(errors="replace")


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A model.bin: sizes by their names in llama2.c, tensors with the layer as first dimension."""

    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    seq_len: int
    tensors: SimpleNamespace

    @property
    def head_size(self):
        """int: of Q, K and V."""
        return self.dim // self.n_heads


def read_model(content):
    """Take the content of a model.bin apart.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    Weights
    """
    names = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
    sizes = dict(zip(names, struct.unpack_from("<7i", content), strict=True))
    dim, hidden, layers, heads, kv_heads, vocab, positions = sizes.values()
    if vocab < 0:
        raise ValueError("model.bin has a head of its own; a tied one is expected")
    kv, half = dim // heads * kv_heads, dim // heads // 2
    shapes = {
        "embedding": (vocab, dim),
        "rms_att": (layers, dim),
        "wq": (layers, dim, dim),
        "wk": (layers, kv, dim),
        "wv": (layers, kv, dim),
        "wo": (layers, dim, dim),
        "rms_ffn": (layers, dim),
        "w1": (layers, hidden, dim),
        "w2": (layers, dim, hidden),
        "w3": (layers, hidden, dim),
        "rms_final": (dim,),
        "freq_real": (positions, half),
        "freq_imag": (positions, half),
    }
    ends = np.cumsum([np.prod(shape) for shape in shapes.values()])
    if len(content) != 28 + 4 * ends[-1]:
        raise ValueError(f"model.bin must have {28 + 4 * ends[-1]} bytes, not {len(content)}")
    parts = np.split(np.frombuffer(content, "<f4", offset=28), ends[:-1])
    tensors = {name: part.reshape(shape)
               for (name, shape), part in zip(shapes.items(), parts, strict=True)}
    return Weights(**sizes, tensors=SimpleNamespace(**tensors))


def rms_norm(x, weight):
    """x / sqrt(mean(x ** 2) + eps) over the last axis, times `weight`."""
    return weight * (x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS))


def rotate(x, real, imag):
    """Turn the pairs (2 i, 2 i + 1) of heads [n, heads, head_size]; tables [n, head_size/2]."""
    even, odd = x[..., ::2], x[..., 1::2]
    real, imag = real[:, None], imag[:, None]
    turned = np.stack((even * real - odd * imag, even * imag + odd * real), axis=-1)
    return turned.reshape(x.shape)


class Decoder:
    """The network with its KV cache.

    Parameters
    ----------
    weights : Weights
    """

    def __init__(self, weights: Weights):
        self._weights = weights
        shape = (weights.n_layers, weights.seq_len, weights.n_kv_heads, weights.head_size)
        self._keys, self._values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.position = 0

    def steps(self, tokens):
        """Feed tokens; returns the logits behind each, float32, [n, vocab]."""
        p, t = self._weights, self._weights.tensors
        places = slice(self.position, self.position + len(tokens))
        real, imag = t.freq_real[places], t.freq_imag[places]
        later = np.arange(places.stop) > np.arange(places.start, places.stop)[:, None]
        x = t.embedding[tokens]
        for layer in range(p.n_layers):
            h = rms_norm(x, t.rms_att[layer])
            q, k, v = (
                (h @ w[layer].T).reshape(len(tokens), -1, p.head_size) for w in (t.wq, t.wk, t.wv)
            )
            self._keys[layer, places] = rotate(k, real, imag)
            self._values[layer, places] = v
            # Each KV head serves neighbouring query heads.
            keys, values = (
                cache[layer, : places.stop].repeat(p.n_heads // p.n_kv_heads, axis=1)
                for cache in (self._keys, self._values)
            )
            scores = rotate(q, real, imag).swapaxes(0, 1) @ keys.transpose(1, 2, 0)
            scores = np.where(later, -np.inf, scores / np.sqrt(np.float32(p.head_size)))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            out = (scores @ values.swapaxes(0, 1)).swapaxes(0, 1).reshape(x.shape)
            x = x + out @ t.wo[layer].T
            h = rms_norm(x, t.rms_ffn[layer])
            gate = h @ t.w1[layer].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ t.w3[layer].T)) @ t.w2[layer].T
        self.position = places.stop
        return rms_norm(x, t.rms_final) @ t.embedding.T

    def step(self, token):
        """Feed one token; returns the logits behind it, float32, [vocab]."""
        return self.steps([token])[0]
