"""A decoder-only language model in torch, for training only: Gemma 4's dense one, or Llama's.

The same arithmetic as :mod:`compiler.model.fp32`, with two liberties that do not change the
result: sliding-window attention looks at blocks of one window (a query sees its own block and
the one before), and matrix products may run in bfloat16 under autocast. Parameters carry the
names of transformers' `Gemma4ForCausalLM`, so that a state dictionary of Gemma is a checkpoint.
The head is always tied.
"""

from functools import partial
from math import sqrt

import torch
from torch import nn
from torch.nn import functional as F

from compiler.model.config import LayerConfig, ModelConfig

#: By `ModelConfig.activation`.
ACTIVATION = {"gelu_tanh": partial(F.gelu, approximate="tanh"), "silu": F.silu}


class RMSNorm(nn.Module):
    """x / rms(x), times a weight where `initial` (its first value) is given."""

    def __init__(self, size, eps, initial=None):
        super().__init__()
        self.eps = eps
        self.weight = None if initial is None else nn.Parameter(torch.full((size,), initial))

    def forward(self, x):
        x = x.float()
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return x if self.weight is None else x * self.weight


class Attention(nn.Module):
    """Attention of one layer, [batch, n, hidden] to the same; n a multiple of the window."""

    def __init__(self, config: ModelConfig, layer: LayerConfig):
        super().__init__()
        self.layer = layer
        q, kv = layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim
        self.q_proj = nn.Linear(config.hidden, q, bias=False)
        self.k_proj = nn.Linear(config.hidden, kv, bias=False)
        self.v_proj = None if layer.k_eq_v else nn.Linear(config.hidden, kv, bias=False)
        self.o_proj = nn.Linear(q, config.hidden, bias=False)
        # The weights of these norms start where scores have deviation 1.
        start = layer.head_dim**-0.25 * layer.scale**-0.5
        norm = partial(RMSNorm, layer.head_dim, config.eps)
        self.q_norm = norm(start) if layer.qk_norm else nn.Identity()
        self.k_norm = norm(start) if layer.qk_norm else nn.Identity()
        self.v_norm = norm() if layer.v_norm else nn.Identity()
        pairs = torch.arange(layer.rope_pairs)
        frequency = torch.zeros(layer.head_dim // 2)
        frequency[: layer.rope_pairs] = layer.rope_theta ** (-2 * pairs / layer.head_dim)
        angle = torch.arange(config.max_position)[:, None] * frequency
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def rotate(self, x):
        """Rotary positions on [batch, n, heads, head_dim]."""
        n = x.shape[1]
        cos, sin = self.cos[:n, None], self.sin[:n, None]
        low, high = x.chunk(2, -1)
        return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)

    def forward(self, x):
        layer, (batch, n, _) = self.layer, x.shape
        q, k = self.q_proj(x), self.k_proj(x)
        v = k if self.v_proj is None else self.v_proj(x)
        q, k, v = (t.view(batch, n, -1, layer.head_dim) for t in (q, k, v))
        q, k = self.rotate(self.q_norm(q)), self.rotate(self.k_norm(k))
        v = self.v_norm(v)
        block = n if layer.window is None else layer.window
        # [batch, kv_heads, query heads per KV head, blocks, block, head_dim]
        q = q.view(batch, n // block, block, layer.kv_heads, -1, layer.head_dim)
        q = q.permute(0, 3, 4, 1, 2, 5)
        k, v = (t.view(batch, n // block, block, layer.kv_heads, layer.head_dim) for t in (k, v))
        k, v = (t.permute(0, 3, 1, 2, 4)[:, :, None] for t in (k, v))
        here = torch.arange(n, device=x.device).view(-1, block, 1)
        there = here.transpose(1, 2)
        if layer.window is not None:
            k, v = (torch.cat((F.pad(t[:, :, :, :-1], (0, 0, 0, 0, 1, 0)), t), -2)
                    for t in (k, v))
            there = torch.cat((there - block, there), -1)
        distance = here - there
        seen = (distance >= 0) & (distance < block) & (there >= 0)
        scores = layer.scale * (q @ k.transpose(-1, -2)).float().masked_fill(~seen, -torch.inf)
        out = scores.softmax(-1) @ v
        return self.o_proj(out.permute(0, 3, 4, 1, 2, 5).reshape(batch, n, -1))


class MLP(nn.Module):
    """down(activation(gate(x)) * up(x))."""

    def __init__(self, hidden, ffn, activation):
        super().__init__()
        self.activation = ACTIVATION[activation]
        self.gate_proj = nn.Linear(hidden, ffn, bias=False)
        self.up_proj = nn.Linear(hidden, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, config: ModelConfig, layer: LayerConfig):
        super().__init__()
        share = branch_share(config)
        post_norm = partial(RMSNorm, config.hidden, config.eps, share)
        self.self_attn = Attention(config, layer)
        self.mlp = MLP(config.hidden, config.ffn, config.activation)
        self.input_layernorm = RMSNorm(config.hidden, config.eps, 1.0)
        self.post_attention_layernorm = post_norm() if config.post_norms else nn.Identity()
        self.pre_feedforward_layernorm = RMSNorm(config.hidden, config.eps, 1.0)
        self.post_feedforward_layernorm = post_norm() if config.post_norms else nn.Identity()
        self.layer_scalar = nn.Parameter(torch.ones(1)) if config.layer_scalars else None

    def forward(self, x):
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x)))
        x = x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
        return x if self.layer_scalar is None else x * self.layer_scalar


def branch_share(config):
    """What every branch of a layer starts with of the residual stream: equal, small shares."""
    return (2 * len(config.layers)) ** -0.5


class Decoder(nn.Module):
    """Embedding, layers and final norm; the names below `model.` in a checkpoint."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab, config.hidden)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in config.layers)
        self.norm = RMSNorm(config.hidden, config.eps, 1.0)


class Network(nn.Module):
    """Tokens [batch, n] to logits [batch, n, vocab].

    Parameters
    ----------
    config : ModelConfig
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
        nn.init.normal_(self.model.embed_tokens.weight, std=0.5 / sqrt(config.hidden))
        if not config.post_norms:
            with torch.no_grad():
                for layer in self.model.layers:
                    for last in (layer.self_attn.o_proj, layer.mlp.down_proj):
                        last.weight *= branch_share(config)

    def forward(self, tokens):
        x = self.model.embed_tokens(tokens) * self.config.embed_scale
        for layer in self.model.layers:
            x = layer(x)
        logits = F.linear(self.model.norm(x), self.model.embed_tokens.weight).float()
        if self.config.softcap is not None:
            logits = self.config.softcap * torch.tanh(logits / self.config.softcap)
        return logits
