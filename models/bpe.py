"""The tokenizer: byte-pair encoding over printable ASCII and the line feed.

A token never spans two words; the space in front of a word is part of its tokens, so decoding
is concatenation. Characters outside the alphabet become `<unk>`.
"""

import json

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

#: Special tokens, in the order and with the numbers of Gemma's tokenizer.
SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>"]
PAD, EOS, BOS, UNK = range(4)

ALPHABET = ["\n", *map(chr, range(32, 127))]


def train(texts, vocab):
    """Learn the merges.

    Parameters
    ----------
    texts : iterable of str
    vocab : int
        Number of tokens, special ones and alphabet included.

    Returns
    -------
    tokenizers.Tokenizer
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        Regex(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s"), behavior="isolated"
    )
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", BOS)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=SPECIAL,
        initial_alphabet=ALPHABET,
        limit_alphabet=len(ALPHABET),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocab:
        raise ValueError(f"expected {vocab} tokens, got {tokenizer.get_vocab_size()}")
    return tokenizer


def save(tokenizer, directory, max_position):
    """Write tokenizer.json and the tokenizer_config.json that transformers wants."""
    compact = json.loads(tokenizer.to_str())
    (directory / "tokenizer.json").write_text(json.dumps(compact, ensure_ascii=True) + "\n")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<eos>",
        "bos_token": "<bos>",
        "unk_token": "<unk>",
        "model_max_length": max_position,
        "clean_up_tokenization_spaces": False,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
