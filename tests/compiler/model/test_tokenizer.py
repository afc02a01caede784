"""Text to tokens and back."""

import pytest

from compiler.model.config import ModelError
from compiler.model.tokenizer_library import LibraryTokenizer
from tests.compiler.model.checkpoints import letters


@pytest.fixture
def tokenizer():
    return LibraryTokenizer(letters(), bos=2)


def test_merges_and_begin_token(tokenizer):
    pieces = [tokenizer.piece(token) for token in tokenizer.encode("the bath")]
    assert pieces == ["<bos>", "the", " ", "b", "a", "th"]


@pytest.mark.parametrize("text", ["", "a", " ", "  a  b ", "the the"])
def test_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_without_begin_token():
    assert LibraryTokenizer(letters(), bos=None).encode("a") == [4]


def test_special_tokens_have_no_text(tokenizer):
    assert [tokenizer.is_special(token) for token in (0, 1, 2, 3, 4)] == [True] * 4 + [False]
    assert tokenizer.decode([2, 4, 1, 0]) == "a"
    assert tokenizer.size == 33


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the Cat", "character 'C' at offset 4 is outside the model's vocabulary"),
        ("caf\u00e9", "character '\u00e9' at offset 3 is outside the model's vocabulary"),
        ("a\nb", r"character '\n' at offset 1 is outside the model's vocabulary"),
        ("\U0001f600", "character '\U0001f600' at offset 0 is outside the model's vocabulary"),
        ("a<bos>b", "character '<' at offset 1 is outside the model's vocabulary"),
    ],
)
def test_text_outside_the_vocabulary_is_named(tokenizer, text, message):
    with pytest.raises(ModelError) as caught:
        tokenizer.encode(text)
    assert str(caught.value) == message
