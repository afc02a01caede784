"""Figures of a trained model: held-out bits per byte, and what it writes.

``python -m models.evaluate --model llama-mini`` measures the committed model and writes its
figures.json; this needs the training text, but no torch. ``--write "And it came"`` continues a
prompt.
"""

import argparse
import json
from dataclasses import dataclass

import numpy as np

from compiler.model import fp32
from compiler.quantise.calibrate import sequences
from models import corpus
from models.recipes import RECIPES, add_model_option

#: Words that a prompt keeps of a held-out verse, and how many prompts are taken.
PROMPT_WORDS, PROMPTS = 4, 32

#: Tokens written after each prompt.
WRITTEN = 100


def prompts(heldout):
    """Beginnings of held-out verses, spread evenly over the text."""
    verses = [line for line in heldout.splitlines() if len(line.split()) > 2 * PROMPT_WORDS]
    step = len(verses) // PROMPTS
    return [" ".join(verse.split()[:PROMPT_WORDS]) for verse in verses[::step][:PROMPTS]]


def generate(checkpoint, prompt, count, temperature=0.0, seed=0):
    """Continue a prompt.

    Parameters
    ----------
    checkpoint : compiler.model.checkpoint.Checkpoint
    prompt : str
    count : int
        Tokens to write, fewer where the end token comes first.
    temperature : float
        0: always the most probable token.
    seed : int

    Returns
    -------
    str
        The text after the prompt.
    """
    rng = np.random.default_rng(seed)
    decoder = fp32.Decoder(checkpoint.weights)
    tokens = checkpoint.tokenizer.encode(prompt)
    for token in tokens:
        logits = decoder.step(token)
    written = []
    while len(written) < count:
        if temperature:
            p = fp32.softmax(logits.astype(np.float64) / temperature)
            token = int(rng.choice(len(p), p=p))
        else:
            token = int(np.argmax(logits))
        if token == checkpoint.config.eos:
            break
        written.append(token)
        if len(written) < count:
            logits = decoder.step(token)
    return checkpoint.tokenizer.decode(tokens + written)[len(prompt):]


def word_share(prompt_and_text, known):
    """Share of the words written that are in `known`.

    A word that the prompt began and the text finished counts; one that the text's end may have
    cut does not.

    Parameters
    ----------
    prompt_and_text : list of (str, str)
        Each prompt with what was written after it.
    known : set of str

    Returns
    -------
    share : float
    total : int
        Words counted.
    """
    written = []
    for prompt, text in prompt_and_text:
        whole = corpus.words(prompt + text)
        first = len(corpus.words(prompt))
        if text and text[0].isalpha():
            first -= 1                                      # the prompt's last word goes on
        last = len(whole) - (1 if text and text[-1].isalpha() else 0)
        written += whole[first:last]
    return sum(word in known for word in written) / len(written), len(written)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Sums over the predicted tokens of a text.

    Parameters
    ----------
    bits : float
        Sum of -log2 p.
    tokens, bytes : int
        What these bits describe.
    """

    bits: float
    tokens: int
    bytes: int

    @property
    def bits_per_byte(self):
        """float: bits per byte of text."""
        return self.bits / self.bytes

    @property
    def perplexity(self):
        """float: 2 to the bits per token."""
        return 2.0 ** (self.bits / self.tokens)


def score(checkpoint, text, context, limit=None):
    """Score a model, in float32, on a text.

    The text is cut as `bench quality` cuts it: consecutive sequences of `context` positions, each
    begun with the begin token, every other token predicted once, an incomplete last one left out.

    Parameters
    ----------
    checkpoint : compiler.model.checkpoint.Checkpoint
    text : str
    context : int
        Positions.
    limit : int or None
        Use only so many sequences.

    Returns
    -------
    Score
    """
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    batch = sequences(tokenizer.encode(text), config.max_position, config.bos, context)[:limit]
    bits = 0.0
    for row in batch:
        logits = fp32.forward(checkpoint.weights, row[:-1]).astype(np.float64)
        largest = logits.max(axis=-1, keepdims=True)
        total = np.log2(np.exp(logits - largest).sum(axis=-1)) + largest[:, 0] / np.log(2)
        bits += float(np.sum(total - logits[np.arange(len(logits)), row[1:]] / np.log(2)))
    size = len(tokenizer.decode(batch[:, 1:].ravel().tolist()).encode())
    return Score(bits=bits, tokens=batch[:, 1:].size, bytes=size)


def write_figures(recipe, directory):
    """Measure a model and write its figures.json; needs the training text.

    Parameters
    ----------
    recipe : Recipe
    directory : Path

    Returns
    -------
    dict
        Figures by name.
    """
    checkpoint = recipe.load(directory)
    heldout = (directory / "heldout.txt").read_text()
    kept, _ = corpus.split(corpus.read_chapters())
    known = set(corpus.words("".join(kept)))
    figures = {"parameters": checkpoint.config.parameters}
    for name, context, limit in (("128", 128, None), ("256", 256, None), ("256_first", 256, 8)):
        result = score(checkpoint, heldout, context, limit)
        figures[f"heldout_{name}"] = {
            "sequences": result.tokens // (context - 1),
            "tokens": result.tokens,
            "bytes": result.bytes,
            "bits_per_byte": round(result.bits_per_byte, 4),
            "perplexity": round(result.perplexity, 4),
        }
    for name, temperature in (("greedy", 0.0), ("temperature_1", 1.0)):
        pairs = [
            (prompt, generate(checkpoint, prompt, WRITTEN, temperature, seed))
            for seed, prompt in enumerate(prompts(heldout))
        ]
        share, count = word_share(pairs, known)
        figures[f"word_share_{name}"] = {
            "share": round(share, 4), "words": count, "prompts": len(pairs),
        }
    (directory / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")
    return figures


def main():
    """Command line: measure, or only write text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_option(parser)
    parser.add_argument("--write", metavar="PROMPT", help="only continue this prompt")
    parser.add_argument("--tokens", type=int, default=WRITTEN, help="tokens to write")
    parser.add_argument("--temperature", type=float, default=0.0)
    args = parser.parse_args()
    recipe = RECIPES[args.model]
    if args.write is None:
        print(json.dumps(write_figures(recipe, recipe.directory), indent=2))
    else:
        checkpoint = recipe.load(recipe.directory)
        text = generate(checkpoint, args.write, args.tokens, args.temperature)
        print(args.write + text)


if __name__ == "__main__":
    main()
