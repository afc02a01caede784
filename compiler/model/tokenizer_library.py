"""Tokenizers that the `tokenizers` library runs: those of a tokenizer.json, byte-level BPE."""

from contextlib import contextmanager

from tokenizers import Tokenizer as FastTokenizer

from compiler.model.config import ModelError
from compiler.model.tokenizer import Tokenizer, short


@contextmanager
def library_errors(what):
    """Turn whatever the library raises into a ModelError that begins with ``what``."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:      # bare Exception, and Rust's panics, which are none
        raise ModelError(f"{what} ({error})") from None


def unbounded(fast):
    """The same tokenizer, without truncation and padding: a text is as long as it is."""
    fast.no_truncation()
    fast.no_padding()
    return fast


class LibraryTokenizer(Tokenizer):
    """A tokenizer of the library.

    Parameters
    ----------
    fast : tokenizers.Tokenizer
    bos : int or None
        Token in front of every text; None: none.

    Raises
    ------
    ModelError
        Two tokens have one number.
    """

    def __init__(self, fast, bos):
        super().__init__(bos)
        self._fast = unbounded(fast)
        self._special = {
            number for number, token in fast.get_added_tokens_decoder().items() if token.special
        }
        self._size = 0
        token_of = {}
        for token, number in sorted(fast.get_vocab().items()):
            if number in token_of:
                raise ModelError(f"tokens {token_of[number]!r} and {token!r} both have the number "
                                 f"{number}")
            token_of[number] = token
            self._size = max(self._size, number + 1)

    @classmethod
    def from_json(cls, text, bos):
        """Read the content of a tokenizer.json.

        Parameters
        ----------
        text : str
        bos : int or None
            The begin token of the model; texts begin with it where the file's post-processor
            says so.

        Raises
        ------
        ModelError
            It is no tokenizer, or begins texts with another token.
        """
        with library_errors("not a tokenizer"):
            fast = unbounded(FastTokenizer.from_str(text))
            first = fast.encode("", add_special_tokens=True).ids[:1]
        if bos is not None and first and first != [bos]:
            raise ModelError(f"texts begin with token {first[0]}, but the model's begin token is "
                             f"{bos}")
        return cls(fast, bos if first else None)

    @property
    def size(self):
        """See `Tokenizer`."""
        return self._size

    def spell(self, text):
        """See `Tokenizer`."""
        with library_errors(f"the tokenizer fails on {short(text)}"):
            return self._fast.encode(text, add_special_tokens=False).ids

    def decode(self, tokens):
        """See `Tokenizer`."""
        with library_errors("the tokenizer fails on tokens"):
            return self._fast.decode(list(tokens), skip_special_tokens=True)

    def piece(self, token):
        """See `Tokenizer`."""
        return self._fast.id_to_token(token)

    def is_special(self, token):
        """See `Tokenizer`."""
        return token in self._special
