"""Pieces with scores: the tokenizers of llama2.c files and of GGUF files of kind "llama".

A text is first spelled in characters; then, while two neighbours together are a piece, those with
the highest score become that piece, the leftmost of equals (the BPE of SentencePiece). Characters
that are no piece become the tokens of their UTF-8 bytes.
"""

import heapq
import math

from compiler.model.config import ModelError
from compiler.model.tokenizer import Tokenizer


class PieceTokenizer(Tokenizer):
    """A vocabulary of pieces.

    Parameters
    ----------
    pieces : list of bytes
        UTF-8, by token number, blanks as blanks.
    scores : list of float
    special : set of int
        Tokens that stand for no text; no text is spelled with them.
    byte_tokens : dict of int to int
        Token of a byte, of as many bytes as have one.
    unknown : int
        Special token of a byte that has none.
    bos : int or None
    space_prefix : bool
        A blank goes in front of every text, and away from there, and from behind every begin
        token, when tokens become text.

    Raises
    ------
    ModelError
        A score is not a number.
    """

    def __init__(self, pieces, scores, *, special, byte_tokens, unknown, bos, space_prefix=True):
        super().__init__(bos)
        for number, score in enumerate(scores):
            if not math.isfinite(score):
                raise ModelError(f"the score of token {number} is not finite")
        self._pieces = pieces
        self._scores = scores
        self._special = special
        self._byte_tokens = byte_tokens
        self._unknown = unknown
        self._space_prefix = space_prefix
        self._text = dict(enumerate(pieces))
        self._text |= {number: bytes([byte]) for byte, number in byte_tokens.items()}
        self._text |= dict.fromkeys(special, b"")
        hidden = special | set(byte_tokens.values())
        self._number = {}
        for number, piece in enumerate(pieces):
            if piece and number not in hidden:
                self._number.setdefault(piece, number)

    @property
    def size(self):
        """See `Tokenizer`."""
        return len(self._pieces)

    def spell(self, text):
        """See `Tokenizer`."""
        if not text:
            return []
        symbols = [char.encode("utf-8", "surrogatepass")
                   for char in (" " + text if self._space_prefix else text)]
        tokens = []
        for symbol in self._merge(symbols):
            if symbol in self._number:
                tokens.append(self._number[symbol])
            else:
                tokens += [self._byte_tokens.get(byte, self._unknown) for byte in symbol]
        return tokens

    def _merge(self, symbols):
        """The symbols of a text, as long as the scores make them."""
        after = list(range(1, len(symbols) + 1))        # neighbours of each symbol that is left
        before = list(range(-1, len(symbols) - 1))
        heap = []

        def offer(left, right):
            if left >= 0 and right < len(symbols):
                merged = symbols[left] + symbols[right]
                number = self._number.get(merged)
                if number is not None:
                    heapq.heappush(heap, (-self._scores[number], left, right, merged))

        for left in range(len(symbols) - 1):
            offer(left, left + 1)
        while heap:
            _, left, right, merged = heapq.heappop(heap)
            # A symbol that has grown or gone since the pair was offered is not that pair's.
            if after[left] != right or symbols[left] + symbols[right] != merged:
                continue
            symbols[left], symbols[right] = merged, b""
            after[left], after[right] = after[right], -1
            if after[left] < len(symbols):
                before[after[left]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [symbol for symbol in symbols if symbol]

    def decode(self, tokens):
        """See `Tokenizer`."""
        parts, begins = [], self._space_prefix
        for token in tokens:
            part = self._text.get(token, b"")
            if part:
                parts.append(part.removeprefix(b" ") if begins else part)
                begins = False
            elif token == self.bos:
                begins = self._space_prefix
        return b"".join(parts).decode("utf-8", "replace")

    def piece(self, token):
        """See `Tokenizer`."""
        return self._pieces[token].decode("utf-8", "replace")

    def is_special(self, token):
        """See `Tokenizer`."""
        return token in self._special


def byte_piece(byte):
    """How a vocabulary spells the token of a byte."""
    return b"<0x%02X>" % byte
