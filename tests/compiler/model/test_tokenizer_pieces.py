"""The tokenizers that merge pieces by their scores."""

import pytest

from compiler.model.config import ModelError
from compiler.model.tokenizer_library import LibraryTokenizer
from compiler.model.tokenizer_pieces import PieceTokenizer
from tests.compiler.model.llama_files import pieces, sentencepiece_json

ALPHABET = " acdehnt\u00e9\u20ac\n9"


def tokenizer(**changes):
    words, scores = pieces()
    options = dict(special={0, 1, 2}, byte_tokens={byte: byte + 3 for byte in range(256)},
                   unknown=0, bos=1)
    return PieceTokenizer(words, scores, **options | changes)


def texts(rng, count, length):
    return ["".join(rng.choice(list(ALPHABET), rng.integers(length))) for _ in range(count)]


def slowly(text):
    """The same in the plainest way: look at all pairs, merge the first of the best, again."""
    words, scores = pieces()
    number = {word: at for at, word in enumerate(words) if at >= 3 + 256}
    tokens = []
    for char in " " + text if text else "":
        char = char.encode()
        tokens += [number[char]] if char in number else [byte + 3 for byte in char]
    while True:
        best, place = float("-inf"), None
        for at in range(len(tokens) - 1):
            merged = number.get(words[tokens[at]] + words[tokens[at + 1]])
            if merged is not None and scores[merged] > best:
                best, place, found = scores[merged], at, merged
        if place is None:
            return tokens
        tokens[place:place + 2] = [found]


def test_equals_the_plainest_way(rng):
    ours = tokenizer()
    for text in texts(rng, 300, 40):
        assert ours.spell(text) == slowly(text)
        assert ours.encode(text) == [1, *slowly(text)]


@pytest.mark.parametrize("style", ["normalizer", "metaspace"])
def test_equals_the_library_on_the_same_vocabulary(rng, style):
    library = LibraryTokenizer.from_json(sentencepiece_json(style), bos=1)
    ours = tokenizer()
    for text in texts(rng, 300, 40):
        text = text.lstrip(" ") if style == "metaspace" else text
        assert library.encode(text) == ours.encode(text)
        assert library.decode(library.encode(text)) == text


def test_a_blank_in_front_goes_away_again():
    library = LibraryTokenizer.from_json(sentencepiece_json(), bos=1)
    for text in ("the cat", " the cat", "  the", "", " ", "\n the "):
        for one in (library, tokenizer()):
            assert one.decode(one.encode(text)) == text
    assert [library.piece(token) for token in library.encode("the cat")] == [
        "<s>", "\u2581the", "\u2581cat"]


def test_a_tokenizer_that_drops_a_blank_says_so():
    library = LibraryTokenizer.from_json(sentencepiece_json("metaspace"), bos=1)
    assert library.decode(library.encode("the cat ")) == "the cat "
    with pytest.raises(ModelError) as caught:
        library.encode(" the")
    assert str(caught.value) == ("the tokenizer drops the blank in front of ' the': leave it out")


def test_of_equal_scores_the_left_one_wins():
    one = PieceTokenizer([b"a", b"aa", b"aaa"], [0, 1, 1], special=set(), byte_tokens={},
                         unknown=0, bos=None, space_prefix=False)
    assert one.spell("aaa") == [2]
    assert one.spell("aaaa") == [2, 0]
    assert one.spell("aaaaa") == [2, 1]


def test_special_and_byte_tokens_are_not_spelled_out():
    assert tokenizer().decode([1, 12, 260, 2]) == "\ta"
    for options in ({"special": {1}, "byte_tokens": {}}, {"special": set(), "byte_tokens": {9: 1}}):
        one = PieceTokenizer([b"a", b"aa"], [0, 0], **options, unknown=1, bos=None,
                             space_prefix=False)
        assert one.spell("aa") == [0, 0]


def test_bytes_that_are_no_character_and_numbers_beyond():
    assert tokenizer().decode([3 + 0xC3]) == "\ufffd"
    assert tokenizer().decode([260, 10_000]) == "a"


def test_a_long_text_is_spelled(rng):
    text = "the cat hath a hat " * 5000
    assert tokenizer().decode(tokenizer().encode(text)) == text


def test_a_character_without_bytes_is_named():
    with pytest.raises(ModelError) as caught:
        tokenizer(byte_tokens={}).encode("the cat!")
    assert str(caught.value) == "character '!' at offset 7 is outside the model's vocabulary"


def test_half_a_character_is_named():
    with pytest.raises(ModelError, match="at offset 1 is outside the model's vocabulary"):
        tokenizer().encode("a\ud800")
