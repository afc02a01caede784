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
        fast.no_truncation()        # a text is as long as it is
        fast.no_padding()
        self._fast = fast
        self._bos = bos
        self._special = {
            number for number, token in fast.get_added_tokens_decoder().items() if token.special
        }

    @classmethod
    def from_json(cls, text, bos):
        """Read the content of a tokenizer.json; ModelError where it is none."""
        try:
            tokenizer = cls(FastTokenizer.from_str(text), bos)
        except Exception as error:                          # the library raises bare Exception
            reason = " ".join(str(error).split())
            raise ModelError(f"not a tokenizer ({reason})") from None
        tokenizer.check()
        return tokenizer

    def check(self):
        """Raise ModelError where two tokens have one number."""
        token_of = {}
        for token, number in sorted(self._fast.get_vocab().items()):
            if number in token_of:
                raise ModelError(f"tokens {token_of[number]!r} and {token!r} both have the number "
                                 f"{number}")
            token_of[number] = token

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
        tokens = self._numbers(text)
        if self._fast.decode(tokens, skip_special_tokens=True) != text:
            for at, char in enumerate(text):
                one = self._numbers(char)
                if self._fast.decode(one, skip_special_tokens=True) != char:
                    raise ModelError(
                        f"character {char!r} at offset {at} is outside the model's vocabulary"
                    )
            raise ModelError(f"the tokens of {_short(text)} do not give the same text back: the "
                             "tokenizer changes texts")
        return tokens if self._bos is None else [self._bos, *tokens]

    def _numbers(self, text):
        try:
            return self._fast.encode(text, add_special_tokens=False).ids
        except Exception as error:                          # the library raises bare Exception
            reason = " ".join(str(error).split())
            raise ModelError(f"the tokenizer fails on {_short(text)} ({reason})") from None

    def decode(self, tokens):
        """Text of tokens; special ones (begin, end) give none."""
        return self._fast.decode(list(tokens), skip_special_tokens=True)

    def piece(self, token):
        """Text of one token as it stands in the vocabulary; special ones by their name."""
        return self._fast.id_to_token(token)

    def is_special(self, token):
        """Whether a token (begin, end, padding, unknown) stands for no text."""
        return token in self._special


def _short(text):
    """The beginning of a text, for a message."""
    return repr(text if len(text) <= 40 else text[:40] + "...")
