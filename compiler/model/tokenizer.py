"""Text to tokens and back, with an error for text that the vocabulary cannot spell."""

from abc import ABC, abstractmethod

from compiler.model.config import ModelError


class Tokenizer(ABC):
    """What every kind of tokenizer offers.

    Parameters
    ----------
    bos : int or None
        Token in front of every text; None: none.
    """

    def __init__(self, bos):
        self.bos = bos

    @property
    @abstractmethod
    def size(self):
        """int: one more than the highest token number."""

    @abstractmethod
    def decode(self, tokens):
        """Text of tokens; special ones (begin, end) and numbers from `size` on give none."""

    @abstractmethod
    def piece(self, token):
        """Text of one token as it stands in the vocabulary; special ones by their name."""

    @abstractmethod
    def is_special(self, token):
        """Whether a token (begin, end, padding, unknown) stands for no text."""

    @abstractmethod
    def spell(self, text):
        """Tokens of a text without the begin token, whatever becomes of unknown characters."""

    def encode(self, text):
        """Tokens of a text, the begin token first.

        Parameters
        ----------
        text : str
            May be empty.

        Returns
        -------
        list of int

        Raises
        ------
        ModelError
            The text holds a character that no token spells; it is named. Or the tokenizer changes
            the text.
        """
        tokens = self.spell(text)
        if self.decode(tokens) != text:
            if f" {self.decode(tokens)}" == text:
                raise ModelError(f"the tokenizer drops the blank in front of {short(text)}: leave "
                                 "it out")
            for at, char in enumerate(text):
                # A blank alone may be one that is dropped.
                if char != " " and self.decode(self.spell(char)) != char:
                    raise ModelError(
                        f"character {char!r} at offset {at} is outside the model's vocabulary"
                    )
            raise ModelError(f"the tokens of {short(text)} do not give the same text back: the "
                             "tokenizer changes texts")
        return tokens if self.bos is None else [self.bos, *tokens]


def check_vocabulary(tokenizer, vocab):
    """ModelError where a tokenizer has a token that a model with ``vocab`` tokens has not."""
    if tokenizer.size > vocab:
        raise ModelError(
            f"{tokenizer.size} tokens do not fit the model's vocabulary of {vocab}"
        )


def short(text):
    """The beginning of a text, for a message."""
    return repr(text if len(text) <= 40 else text[:40] + "...")
