"""Byte-pair encoding of a text, learned with the `tokenizers` library.

A token never spans two words; the space in front of a word is part of its tokens.
"""

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers


def learn(texts, vocab, *, special=(), unknown=None, alphabet=None):
    """Learn the merges.

    Parameters
    ----------
    texts : iterable of str
    vocab : int
        Number of tokens, special ones and alphabet included.
    special : sequence of str
        Tokens with the first numbers, which no text spells.
    unknown : str or None
        The one of them for characters outside the alphabet.
    alphabet : list of str or None
        The characters; None: those of the texts.

    Returns
    -------
    tokenizers.Tokenizer
    """
    tokenizer = Tokenizer(models.BPE(unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        Regex(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s"), behavior="isolated"
    )
    fixed = {} if alphabet is None else {
        "initial_alphabet": alphabet, "limit_alphabet": len(alphabet),
    }
    trainer = trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=list(special), show_progress=False, **fixed
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocab:
        raise ValueError(f"expected {vocab} tokens, got {tokenizer.get_vocab_size()}")
    return tokenizer
