"""Text to tokens and back, with an error for text that the vocabulary cannot spell."""

from tokenizers import Tokenizer as FastTokenizer

from compiler.model.config import ModelError


class Tokenizer:
    """A Hugging Face `tokenizer.json`.

    Parameters
    ----------
    fast : tokenizers.Tokenizer
    bos : int or None
        Token in front of every text; None: none.
    """

    def __init__(self, fast, bos):
        self._fast = fast
        self._bos = bos
        self._special = {
            number for number, token in fast.get_added_tokens_decoder().items() if token.special
        }

    @classmethod
    def from_json(cls, text, bos):
        """Read the content of a tokenizer.json; ModelError where it is none."""
        try:
            return cls(FastTokenizer.from_str(text), bos)
        except Exception as error:                          # the library raises bare Exception
            reason = " ".join(str(error).split())
            raise ModelError(f"not a tokenizer ({reason})") from None

    @property
    def size(self):
        """int: one more than the highest token number."""
        return max(self._fast.get_vocab().values()) + 1

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
            The text holds a character that no token spells; it is named.
        """
        tokens = self._fast.encode(text, add_special_tokens=False).ids
        if self._fast.decode(tokens, skip_special_tokens=True) != text:
            for at, char in enumerate(text):
                one = self._fast.encode(char, add_special_tokens=False).ids
                if self._fast.decode(one, skip_special_tokens=True) != char:
                    raise ModelError(
                        f"character {char!r} at offset {at} is outside the model's vocabulary"
                    )
            raise ModelError(f"the model's vocabulary cannot spell {text!r}")
        return tokens if self._bos is None else [self._bos, *tokens]

    def decode(self, tokens):
        """Text of tokens; special ones (begin, end) give none."""
        return self._fast.decode(list(tokens), skip_special_tokens=True)

    def piece(self, token):
        """Text of one token as it stands in the vocabulary; special ones by their name."""
        return self._fast.id_to_token(token)

    def is_special(self, token):
        """Whether a token (begin, end, padding, unknown) stands for no text."""
        return token in self._special
