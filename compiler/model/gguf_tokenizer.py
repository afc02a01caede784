"""The tokenizer in the metadata of a GGUF file: byte-level BPE ("gpt2"), or pieces ("llama")."""

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as FastTokenizer

from compiler.model.config import ModelError
from compiler.model.fields import get
from compiler.model.tokenizer_library import LibraryTokenizer, library_errors
from compiler.model.tokenizer_pieces import PieceTokenizer, byte_piece

#: Values of tokenizer.ggml.token_type.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
#: How a piece writes a blank.
BLANK = "\u2581"

#: How a text is cut before its bytes are merged, by tokenizer.ggml.pre: expressions that each
#: isolate their matches in what the ones before left, and whether GPT-2's comes last.
#: "default" and "smollm" are what llama.cpp does under these names.
CUTS = {
    "gpt-2": ((), True),
    "smollm": ((r"\p{N}",), True),
    "default": ((r"[\p{P}\$\+<=>\^~\|]+",
                 r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
                 r"\p{N}+", "[0-9][0-9][0-9]"), False),
}


def begins_texts(data):
    """Whether texts begin with the begin token of this metadata."""
    said = get(data, "tokenizer.ggml.add_bos_token", bool, optional=True)
    return data.get("tokenizer.ggml.model") == "llama" if said is None else said


def parse_tokenizer(data, bos):
    """The tokenizer of a file's metadata.

    Parameters
    ----------
    data : dict
    bos : int or None
        Token in front of every text; None: none.

    Returns
    -------
    Tokenizer

    Raises
    ------
    ModelError
        Another kind, or one that cannot be.
    """
    kind = get(data, "tokenizer.ggml.model", str)
    if kind not in ("gpt2", "llama"):
        raise ModelError(f"tokenizer.ggml.model must be gpt2 or llama, not {kind}")
    tokens = _list(data, "tokenizer.ggml.tokens", str)
    types = [NORMAL] * len(tokens)
    if kind == "llama" or "tokenizer.ggml.token_type" in data:
        types = _list(data, "tokenizer.ggml.token_type", int, len(tokens))
    return (_pieces if kind == "llama" else _byte_level)(data, tokens, types, bos)


def _list(data, key, kind, length=None):
    """A list of values of one type."""
    values = get(data, key, list)
    if not values or type(values[0]) is not kind:
        raise ModelError(f"{key} must hold values of type {kind.__name__}")
    if length not in (None, len(values)):
        raise ModelError(f"{key} has {len(values)} values for {length} tokens")
    return values


def _pieces(data, tokens, types, bos):
    """PieceTokenizer of metadata."""
    if USER_DEFINED in types:
        raise ModelError(f"token {tokens[types.index(USER_DEFINED)]!r} is user-defined: such "
                         "tokens are not supported in a tokenizer of kind llama")
    special = {number for number, kind in enumerate(types) if kind in (UNKNOWN, CONTROL, UNUSED)}
    byte_of = {byte_piece(byte): byte for byte in range(256)}
    byte_tokens = {}
    for number, kind in enumerate(types):
        if kind == BYTE:
            spelled = tokens[number].encode()
            if spelled not in byte_of:
                raise ModelError(f"byte token {number} is spelled {tokens[number]!r}, must be "
                                 "<0x00> to <0xFF>")
            byte_tokens[byte_of[spelled]] = number
    prefix = get(data, "tokenizer.ggml.add_space_prefix", bool, optional=True)
    return PieceTokenizer(
        [token.replace(BLANK, " ").encode() for token in tokens],
        _list(data, "tokenizer.ggml.scores", float, len(tokens)),
        special=special, byte_tokens=byte_tokens, bos=bos, space_prefix=prefix is not False,
        unknown=types.index(UNKNOWN) if UNKNOWN in types else 0)


def _byte_level(data, tokens, types, bos):
    """LibraryTokenizer of metadata."""
    cut = get(data, "tokenizer.ggml.pre", str, optional=True) or "default"
    if cut not in CUTS:
        raise ModelError(f"tokenizer.ggml.pre must be one of {', '.join(CUTS)}, not {cut}")
    if get(data, "tokenizer.ggml.add_space_prefix", bool, optional=True):
        raise ModelError("tokenizer.ggml.add_space_prefix must be false for a tokenizer of kind "
                         "gpt2")
    if len(set(tokens)) < len(tokens):
        raise ModelError("tokenizer.ggml.tokens has a token twice")
    merges = [tuple(merge.split(" ")) for merge in _list(data, "tokenizer.ggml.merges", str)]
    if not all(len(pair) == 2 for pair in merges):
        raise ModelError("tokenizer.ggml.merges must hold two pieces with a blank between them")
    expressions, gpt2 = CUTS[cut]
    with library_errors("not a tokenizer"):
        fast = FastTokenizer(models.BPE(
            vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
        fast.pre_tokenizer = pre_tokenizers.Sequence([
            *(pre_tokenizers.Split(Regex(expression), "isolated") for expression in expressions),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=gpt2)])
        fast.decoder = decoders.ByteLevel()
        fast.add_special_tokens([token for token, kind in zip(tokens, types, strict=True)
                                 if kind in (UNKNOWN, CONTROL, UNUSED)])
        fast.add_tokens([AddedToken(token, normalized=False)
                         for token, kind in zip(tokens, types, strict=True)
                         if kind == USER_DEFINED])
    return LibraryTokenizer(fast, bos)
