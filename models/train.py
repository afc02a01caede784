"""Train a small model: ``python -m models.train --model llama-mini``.

Needs torch and the training text (see :mod:`models.corpus`); nothing else of the project does.
Everything random comes from one seed; on the same machine and with the same versions a run
gives the same weights, also when it was interrupted and resumed, because the rate of a step
depends on the cooldown only once that has begun. The directory written is complete after every
export.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from models import corpus
from models.evaluate import score, write_figures
from models.network import Network
from models.recipes import RECIPES, add_model_option


class Batches:
    """Windows of the training text, [batch, context + 1] tokens, the begin token first.

    Half of them begin where a verse does, half anywhere. Those of a verse begin as the tokenizer
    encodes it on its own, which may differ from how it goes on behind another verse.
    """

    def __init__(self, tokenizer, config, chapters, batch, seed):
        encoded = [[*tokenizer.encode(chapter), config.eos] for chapter in chapters]
        self.stream = torch.tensor([token for chapter in encoded for token in chapter])
        self.bos, self.context, self.batch = config.bos, config.max_position, batch
        self.last = len(self.stream) - self.context
        newline = tokenizer.encode("\n")[-1]
        ends = (self.stream == newline).nonzero()[:, 0].tolist()
        self.verses, at = [], 0
        for chapter in chapters:
            for verse in chapter.splitlines(keepends=True):
                self.verses.append((tokenizer.encode(verse)[1:], ends[at] + 1))
                at += 1
            self.verses.append(([], ends[at - 1] + 1))      # what ends a chapter
        self.verses = [(opening, start) for opening, start in self.verses
                       if start - len(opening) < self.last]
        self.generator = torch.Generator().manual_seed(seed)

    def next(self):
        """The next batch."""
        half = self.batch // 2
        pick = torch.randint(len(self.verses), (half,), generator=self.generator)
        anywhere = torch.randint(self.last, (self.batch - half,), generator=self.generator)
        rows = [self._window(*self.verses[index]) for index in pick]
        rows += [self._window([], start) for start in anywhere]
        return torch.stack(rows)

    def _window(self, opening, start):
        """The begin token, the tokens `opening`, and the stream from `start` on."""
        first = torch.tensor([self.bos, *opening])
        return torch.cat((first, self.stream[start : start + self.context]))[: self.context + 1]


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


def arrays(net):
    """The parameters by name, float32."""
    return {name: value.detach().numpy() for name, value in net.state_dict().items()}


def train(recipe, args):
    """Train and export."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    args.out.mkdir(parents=True, exist_ok=True)
    kept, held = corpus.split(corpus.read_chapters())
    heldout = "".join(held)
    (args.out / "heldout.txt").write_text(heldout)
    tokenizer = recipe.learn_tokenizer(kept, args.out)
    config = recipe.config
    batches = Batches(tokenizer, config, kept, args.batch, args.seed)
    net = Network(config)
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
            recipe.export(arrays(net), args.out)
            result = score(recipe.load(args.out), heldout, config.max_position)
            line = (f"{step + 1},{(step + 1) * args.batch * config.max_position},"
                    f"{np.mean(losses):.4f},{result.bits_per_byte:.4f}")
            print(line, file=log, flush=True)
            print(line, flush=True)
            losses = []
    log.close()
    write_figures(recipe, args.out)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_option(parser)
    parser.add_argument("--out", type=Path, help="directory (default: that of the model)")
    parser.add_argument("--steps", type=int, help="default: as many as the committed model")
    parser.add_argument("--warmup", type=int, default=100, help="steps of rising rate")
    parser.add_argument("--cooldown", type=int, help="last steps, of falling rate; default: half")
    parser.add_argument("--batch", type=int, default=16, help="sequences per step; even")
    parser.add_argument("--muon-rate", type=float, help="default: that of the committed model")
    parser.add_argument("--adam-rate", type=float, help="default: that of the committed model")
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--every", type=int, default=200, help="steps between exports")
    parser.add_argument("--state", type=Path, help="file that keeps the state of the run")
    parser.add_argument("--resume", action="store_true", help="go on from --state")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    recipe = RECIPES[args.model]
    args.out = args.out or recipe.directory
    for name in ("steps", "muon_rate", "adam_rate"):
        if getattr(args, name) is None:
            setattr(args, name, getattr(recipe, name))
    if args.cooldown is None:
        args.cooldown = args.steps // 2
    if args.resume and not (args.state and args.state.is_file()):
        parser.error("--resume needs --state, a file that an earlier run wrote")
    if args.batch < 2 or args.batch % 2:
        parser.error(f"--batch must be even and positive, not {args.batch}")
    train(recipe, args)


if __name__ == "__main__":
    main()
