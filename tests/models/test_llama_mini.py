"""llama-mini: its files as llama2.c lays them out; what it has in common with others: test_trained.
"""

import json
import struct

import numpy as np
import pytest

from compiler.model import fp32
from models import corpus
from models.evaluate import generate, prompts, score, word_share
from models.llama_mini import CONFIG, DIRECTORY, RECIPE
from tests.models import llama2c_numpy

FILES = {
    "LICENSE", "README.md", "calibration.txt", "figures.json", "heldout.txt", "model.bin",
    "tokenizer.bin", "training_log.csv",
}
#: hidden, FFN, layers, query heads, KV heads, vocabulary, positions.
HEADER = (64, 172, 5, 8, 4, 500, 256)


@pytest.fixture(scope="module")
def checkpoint():
    return RECIPE.load(DIRECTORY)


@pytest.fixture(scope="module")
def tokenizer():
    """The independent reader's."""
    return llama2c_numpy.Tokenizer((DIRECTORY / "tokenizer.bin").read_bytes(), HEADER[5])


@pytest.fixture(scope="module")
def weights():
    """The independent reader's."""
    return llama2c_numpy.read_model((DIRECTORY / "model.bin").read_bytes())


@pytest.fixture(scope="module")
def heldout():
    return (DIRECTORY / "heldout.txt").read_text()


def test_files_and_their_size():
    sizes = {path.name: path.stat().st_size for path in DIRECTORY.iterdir()}
    assert set(sizes) == FILES
    assert sizes["heldout.txt"] <= 200_000
    assert sum(sizes.values()) - sizes["heldout.txt"] <= 1_100_000


def test_header_and_size_of_the_model_file():
    content = (DIRECTORY / "model.bin").read_bytes()
    assert struct.unpack_from("<7i", content) == HEADER
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 172 + 2 * 64
    parameters = 500 * 64 + 5 * layer + 64
    assert parameters == json.loads((DIRECTORY / "figures.json").read_text())["parameters"]
    assert len(content) == 28 + 4 * (parameters + 2 * 256 * 4)


def test_rotary_tables_are_those_of_theta_10000(weights):
    angle = np.outer(np.arange(256), [1, 0.1, 0.01, 0.001])
    np.testing.assert_allclose(weights.tensors.freq_real, np.cos(angle), rtol=0, atol=1e-6)
    np.testing.assert_allclose(weights.tensors.freq_imag, np.sin(angle), rtol=0, atol=1e-6)


def test_norms_are_trained(weights):
    """Every one began at 1."""
    for name in ("rms_att", "rms_ffn", "rms_final"):
        assert np.ptp(getattr(weights.tensors, name), axis=-1).min() > 0.1, name


def test_what_is_imported_is_what_was_trained(checkpoint):
    assert checkpoint.config == CONFIG


def test_pieces_of_the_tokenizer(tokenizer):
    assert tokenizer.pieces[:3] == [b"<unk>", b"\n<s>\n", b"\n</s>\n"]
    assert tokenizer.pieces[3:259] == [b"<0x%02X>" % byte for byte in range(256)]
    assert tokenizer.scores == [0] * 259 + [-rank for rank in range(241)]
    pieces = tokenizer.pieces[259:]
    assert len(set(pieces)) == 241 and tokenizer.longest == max(map(len, tokenizer.pieces))
    for rank, piece in enumerate(pieces):
        earlier = {*pieces[:rank], *(other for other in pieces if len(other) == 1)}
        assert len(piece) == 1 or any(
            piece[:at] in earlier and piece[at:] in earlier for at in range(1, len(piece))
        ), piece


def test_tokenizer_falls_back_to_bytes(checkpoint, tokenizer):
    tokens = checkpoint.tokenizer.encode("\n\u00e9\0")
    assert [token - 3 for token in tokens[2:]] == [0x0A, 0xC3, 0xA9, 0]
    for text in ("", " ", "  And", "<s>", "\u65e5\u672c\t#~", "x\n"):
        tokens = checkpoint.tokenizer.encode(text)
        assert checkpoint.tokenizer.decode(tokens) == text
        assert tokenizer.encode(text) == tokens and tokenizer.decode(tokens) == text
    assert checkpoint.tokenizer.encode("") == [1]


def encode_slowly(tokenizer, text):
    """What the format's description says, word for word: merge the best pair, look again."""
    tokens = [tokenizer.pieces.index(b" ")] if text else []
    for character in map(str.encode, text):
        if character in tokenizer.pieces:
            tokens.append(tokenizer.pieces.index(character))
        else:
            tokens += [byte + 3 for byte in character]
    while True:
        best = None
        for at in range(len(tokens) - 1):
            merged = tokenizer.pieces[tokens[at]] + tokenizer.pieces[tokens[at + 1]]
            if merged in tokenizer.pieces:
                number = tokenizer.pieces.index(merged)
                if best is None or tokenizer.scores[number] > tokenizer.scores[best[1]]:
                    best = at, number
        if best is None:
            return [1, *tokens]
        at, number = best
        tokens[at : at + 2] = [number]


def test_tokenizer_merges_as_the_format_says(checkpoint, tokenizer, heldout, rng):
    letters = [*"aehhinnrstttd  LORD\u00e9\n"]
    texts = [heldout[at : at + 120] for at in rng.integers(0, len(heldout) - 120, 12)]
    texts += ["".join(rng.choice(letters, 60)) for _ in range(12)]
    texts += ["t" * 7, "th" * 9, "l" * 9]
    for text in texts:
        assert checkpoint.tokenizer.encode(text) == encode_slowly(tokenizer, text), text


def test_both_tokenizers_encode_the_held_out_text_alike(checkpoint, tokenizer, heldout):
    tokens = checkpoint.tokenizer.encode(heldout)
    assert tokens == tokenizer.encode(heldout)
    assert tokenizer.decode(tokens) == heldout


def test_each_of_several_texts_loses_its_blank(checkpoint, tokenizer):
    tokens = [*checkpoint.tokenizer.encode("And he said"), 2,
              *checkpoint.tokenizer.encode("And they came")]
    for either in (checkpoint.tokenizer, tokenizer):
        assert either.decode(tokens) == "And he saidAnd they came"


def test_imported_weights_give_the_independent_readers_logits(checkpoint, weights, heldout):
    tokens = checkpoint.tokenizer.encode(heldout)[:256]
    expected = llama2c_numpy.Decoder(weights).steps(tokens)
    assert np.abs(expected).max() > 5
    np.testing.assert_allclose(fp32.forward(checkpoint.weights, tokens), expected, rtol=0,
                               atol=1e-4)


def test_held_out_text_is_predicted(checkpoint, heldout):
    """The vocabulary alone costs log2(500) bits for 2.2 bytes, letters by frequency 4 a byte."""
    assert score(checkpoint, heldout[20_000:30_000], 256, 8).bits_per_byte < 1.7


def test_what_is_written_is_words(checkpoint, heldout):
    known = set(corpus.words(heldout + (DIRECTORY / "calibration.txt").read_text()))
    pairs = [(prompt, generate(checkpoint, prompt, 60)) for prompt in prompts(heldout)[::4]]
    share, count = word_share(pairs, known)
    assert count > 150
    assert share >= 0.95


def test_one_by_one_gives_what_a_sequence_gives(checkpoint, heldout):
    tokens = checkpoint.tokenizer.encode(heldout[:1000])[:256]
    decoder = fp32.Decoder(checkpoint.weights)
    stepped = np.array([decoder.step(token) for token in tokens])
    np.testing.assert_allclose(stepped, fp32.forward(checkpoint.weights, tokens), rtol=0,
                               atol=1e-4)
