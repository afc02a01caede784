"""Train the small model: ``python -m models.train``.

Needs torch and the training text (see :mod:`models.corpus`); nothing else of the project does.
Everything random comes from one seed; on the same machine and with the same versions a run
gives the same weights, also when it was interrupted and resumed, because the rate of a step
depends on the cooldown only once that has begun. The directory written is complete after every
export.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from compiler.model import checkpoint
from compiler.model.hf_config import parse_config
from models import bpe, corpus
from models.evaluate import DIRECTORY, score, write_figures
from models.network import Gemma4

CONTEXT = 256
VOCAB = 512

#: config.json of the model: Gemma 4 31B's, with smaller numbers. The last two rows say the same
#: as per_layer_config in the words of other releases of transformers.
CONFIG = {
    "architectures": ["Gemma4ForCausalLM"],
    "model_type": "gemma4_text",
    "dtype": "float16",
    "vocab_size": VOCAB,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 6,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "sliding_window": 32,
    "attention_k_eq_v": True,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {
            "rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25,
        },
    },
    "final_logit_softcapping": 30.0,
    "max_position_embeddings": CONTEXT,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": VOCAB,
    "num_kv_shared_layers": 0,
    "enable_moe_block": False,
    "use_double_wide_mlp": False,
    "tie_word_embeddings": True,
    "use_bidirectional_attention": None,
    "use_cache": True,
    "initializer_range": 0.02,
    "pad_token_id": bpe.PAD,
    "eos_token_id": bpe.EOS,
    "bos_token_id": bpe.BOS,
    "per_layer_config": {"5": {"head_dim": 32, "num_key_value_heads": 2}},
    "global_head_dim": 32,
    "num_global_key_value_heads": 2,
}


class Batches:
    """Windows of the training text, [batch, CONTEXT + 1] tokens, the begin token first.

    Half of them begin where a verse does, half anywhere.
    """

    def __init__(self, tokenizer, chapters, batch, seed):
        encoded = [tokenizer.encode(chapter).ids + [bpe.EOS] for chapter in chapters]
        self.stream = torch.tensor([token for chapter in encoded for token in chapter])
        newline = tokenizer.token_to_id("\n")
        begins = (self.stream == newline) | (self.stream == bpe.BOS)
        last = len(self.stream) - CONTEXT
        self.verses = begins[: last - 1].nonzero()[:, 0] + 1
        self.last = last
        self.batch = batch
        self.generator = torch.Generator().manual_seed(seed)

    def next(self):
        """The next batch."""
        half = self.batch // 2
        pick = torch.randint(len(self.verses), (half,), generator=self.generator)
        anywhere = torch.randint(self.last, (self.batch - half,), generator=self.generator)
        starts = torch.cat((self.verses[pick], anywhere))
        windows = self.stream[starts[:, None] + torch.arange(CONTEXT)]
        return torch.cat((torch.full((self.batch, 1), bpe.BOS), windows), 1)


def optimizers(net, args):
    """Muon for the matrices of the layers, Adam for embedding, norms and scalars."""
    matrices, embedding, vectors = [], [], []
    for name, parameter in net.named_parameters():
        group = vectors if parameter.dim() == 1 else matrices
        (embedding if "embed_tokens" in name else group).append(parameter)
    return [
        torch.optim.Muon(matrices, lr=args.muon_rate, weight_decay=args.decay, momentum=0.95,
                         adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(
            [{"params": embedding, "lr": args.adam_rate, "weight_decay": args.decay},
             {"params": vectors, "lr": args.adam_rate, "weight_decay": 0.0}],
            betas=(0.9, 0.98), eps=1e-10,
        ),
    ]


def rate(step, args):
    """Learning rate at a step, relative to the peak: warm up, hold, fall linearly to 0."""
    return min((step + 1) / args.warmup, 1.0, (args.steps - step) / args.cooldown)


def save_state(path, step, net, both, batches):
    """Write all that a run needs to go on from after `step` steps."""
    state = {"step": step, "net": net.state_dict(), "optimizers": [o.state_dict() for o in both],
             "batches": batches.generator.get_state()}
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


def load_state(path, net, both, batches):
    """Restore what :func:`save_state` wrote; returns the steps done."""
    state = torch.load(path, weights_only=True)
    net.load_state_dict(state["net"])
    for optimizer, saved in zip(both, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    batches.generator.set_state(state["batches"])
    return state["step"]


def export(net, directory):
    """Write config.json and the weights, rounded to float16."""
    (directory / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    tensors = {name: value.detach().to(torch.float16).contiguous()
               for name, value in net.state_dict().items()}
    partial = directory / "model.safetensors.part"
    save_file(tensors, partial, metadata={"format": "pt"})
    partial.chmod(0o644)
    partial.replace(directory / "model.safetensors")


def train(args):
    """Train and export."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    args.out.mkdir(parents=True, exist_ok=True)
    kept, held = corpus.split(corpus.read_chapters())
    heldout = "".join(held)
    (args.out / "heldout.txt").write_text(heldout)
    tokenizer = bpe.train(kept, VOCAB)
    bpe.save(tokenizer, args.out, CONTEXT)
    batches = Batches(tokenizer, kept, args.batch, args.seed)
    net = Gemma4(parse_config(CONFIG))
    forward = torch.compile(net) if args.compile else net
    both = optimizers(net, args)
    peaks = [[group["lr"] for group in o.param_groups] for o in both]
    print(f"{sum(p.numel() for p in net.parameters())} parameters, "
          f"{len(batches.stream)} training tokens", flush=True)
    done = 0
    if args.resume:
        done = load_state(args.state, net, both, batches)
    log = (args.out / "training_log.csv").open("a" if args.resume else "w")
    if not done:
        print("step,tokens,train_bits_per_token,heldout_bits_per_byte", file=log)
    losses = []
    for step in range(done, args.steps):
        for optimizer, peak in zip(both, peaks, strict=True):
            for group, top in zip(optimizer.param_groups, peak, strict=True):
                group["lr"] = top * rate(step, args)
        tokens = batches.next()
        with torch.autocast("cpu", torch.bfloat16):
            logits = forward(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        for optimizer in both:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item() / np.log(2))
        if args.state and (step + 1) % args.every == 0:
            save_state(args.state, step + 1, net, both, batches)
        if (step + 1) % args.every == 0 or step + 1 == args.steps:
            export(net, args.out)
            result = score(checkpoint.load(args.out), heldout, CONTEXT)
            line = (f"{step + 1},{(step + 1) * args.batch * CONTEXT},"
                    f"{np.mean(losses):.4f},{result.bits_per_byte:.4f}")
            print(line, file=log, flush=True)
            print(line, flush=True)
            losses = []
    log.close()
    write_figures(args.out)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DIRECTORY)
    parser.add_argument("--steps", type=int, default=3200)
    parser.add_argument("--warmup", type=int, default=100, help="steps of rising rate")
    parser.add_argument("--cooldown", type=int, default=1600, help="last steps, of falling rate")
    parser.add_argument("--batch", type=int, default=16, help="sequences per step; even")
    parser.add_argument("--muon-rate", type=float, default=0.005)
    parser.add_argument("--adam-rate", type=float, default=0.003)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--every", type=int, default=200, help="steps between exports")
    parser.add_argument("--state", type=Path, help="file that keeps the state of the run")
    parser.add_argument("--resume", action="store_true", help="go on from --state")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    if args.resume and not (args.state and args.state.is_file()):
        parser.error("--resume needs --state, a file that an earlier run wrote")
    if args.batch < 2 or args.batch % 2:
        parser.error(f"--batch must be even and positive, not {args.batch}")
    train(args)


if __name__ == "__main__":
    main()
