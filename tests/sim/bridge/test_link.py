"""The host's side of a bad line: what is lost, damaged, late or somebody else's."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.bridge import Result
from hdl.arch.config import single
from hdl.arch.presets import DEMO, FPGA, NANO
from sim.bridge.board import Board
from sim.bridge.frames import FrameReader, frame
from sim.bridge.link import BridgeError, SerialLink
from sim.bridge.records import Records, identity_request
from sim.bridge.stream import ByteStream
from sim.image import initial_sram
from sim.rtl.loader import Loader
from tests.sim.bridge.fake import BridgeModel
from tests.sim.rtl.tile_model import TileModel

IDENTITY = identity_request(NANO)


class Line(ByteStream):
    """A line to a `BridgeModel`, without time.

    Parameters
    ----------
    model : BridgeModel
    changes : dict
        By number of a frame from 0: a function of the frame to the bridge, and one of that back
        (of nothing, where none came to the bridge), each giving the bytes that come.
    """

    name = "the line"
    byte_time = patience = 0

    def __init__(self, model, changes=()):
        self.frames = 0
        self._model, self._changes = model, dict(changes)
        self._reader, self._come = FrameReader(), []

    async def write(self, data):
        there, back = self._changes.get(self.frames, (bytes, bytes))
        self.frames += 1
        answers = [frame(self._model.answer(body)) for body in self._reader.feed(there(data))]
        for answer in answers or [b""]:
            self.come(back(answer))

    def come(self, data):
        self._come += [data[:3], data[3:]] if data else []

    async def read(self, limit):
        return self._come.pop(0) if self._come else b""


def nothing(data):
    return b""


def damaged(data):
    return data[:4] + bytes([data[4] ^ 1]) + data[5:]


def not_understood(data):
    """In place of an answer: the bridge says that it got no frame."""
    return frame(bytes([0, Result.DAMAGED.value, 0, 0, 0]))


def ask_three(line):
    """Three requests over the line; gives the link."""
    async def go():
        link = SerialLink(line, attempts=4)
        await link.begin()
        answers = [await link.ask(IDENTITY.records, IDENTITY.returned) for _ in range(3)]
        assert all(answer == answers[0] and answer[1].result is Result.OK for answer in answers)
        return link

    return asyncio.run(go())


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("change", [
    (nothing, bytes), (bytes, nothing), (bytes, damaged), (nothing, not_understood),
    (bytes, lambda data: data + data), (bytes, lambda data: b"\x7e\x12\x7e" + data)])
def test_a_request_is_executed_once_and_answered(number, change):
    model = BridgeModel(NANO)
    link = ask_three(Line(model, {number: change}))
    assert model.executed == 3 and link.requests == 3


@pytest.mark.parametrize(("change", "repeats"), [
    ((nothing, bytes), 1), ((nothing, not_understood), 1), ((bytes, damaged), 1),
    ((bytes, lambda data: data + data), 0)])
def test_repeats_are_counted(change, repeats):
    assert ask_three(Line(BridgeModel(NANO), {2: change})).repeats == repeats


def test_more_than_255_requests():
    async def go():
        link = SerialLink(Line(model))
        await link.begin()
        for _ in range(600):
            await link.ask(IDENTITY.records, IDENTITY.returned)

    model = BridgeModel(NANO)
    asyncio.run(go())
    assert model.executed == 600


@pytest.mark.parametrize(("change", "message"), [
    ((nothing, bytes), "Nothing answers at the line"),
    ((bytes, lambda data: b"\x55\xaa" * 9), "What comes from the line is no answer of a bridge"),
    ((nothing, not_understood), "Line to the line is too bad: 4 attempts"),
    ((bytes, lambda data: frame(b"something else")), "Line to the line is too bad: 4 attempts")])
def test_it_gives_up(change, message):
    line = Line(BridgeModel(NANO), {number: change for number in range(9)})
    with pytest.raises(BridgeError, match=message):
        ask_three(line)
    assert line.frames == 4


def test_an_answer_that_was_left_is_not_taken_for_another():
    line = Line(BridgeModel(NANO))
    line.come(frame(bytes([0, Result.OK.value, 0, 1, 2])))      # to another nonce
    line.come(frame(bytes([1, 9, 9, 9, 9, Result.OK.value, 0, 1, 0])))
    assert ask_three(line).repeats == 0


def test_a_device_that_never_stops_talking_is_given_up():
    class Chatter(Line):
        async def read(self, limit):
            return b"chatter"

    with pytest.raises(BridgeError, match="is no answer of a bridge"):
        ask_three(Chatter(BridgeModel(NANO)))


def test_another_program_on_the_line_is_noticed():
    async def go():
        first, second = SerialLink(line), SerialLink(line)
        for link in (first, second):
            await link.begin()
            await link.ask(IDENTITY.records, IDENTITY.returned)
            await link.ask(IDENTITY.records, IDENTITY.returned)
        await second.ask(IDENTITY.records, IDENTITY.returned)
        await first.begin()
        await second.ask(IDENTITY.records, IDENTITY.returned)

    line = Line(BridgeModel(NANO))
    with pytest.raises(BridgeError, match="was reset, or another program uses it"):
        asyncio.run(go())


@pytest.mark.parametrize(("cfg", "buffer"), [(NANO, 64), (NANO, 2048), (FPGA, 2048), (DEMO, 512)])
def test_requests_fit_and_do_what_the_commands_do(cfg, buffer):
    async def go():
        board = Board(SerialLink(Line(model)), system)
        await board.connect()
        for batch in batches:
            rows = await board.play(batch)
        return rows

    system, binary = single(cfg), SystemBinary([TileBinary()])
    model, direct = BridgeModel(cfg, buffer=buffer), TileModel(cfg)
    loader = Loader(system, binary, initial_sram(system, binary, 3))
    read = loader.read_sram()[0]
    batches = [[loader.load_sram()[0][:300]], loader.load_program(), [read[:min(300, len(read))]]]
    observed, = asyncio.run(go())
    expected = [direct.play(batch[0]) for batch in batches][-1]
    np.testing.assert_array_equal(observed, np.frombuffer(b"".join(expected), np.uint8)
                                  .reshape(len(expected), -1))
    assert (model.tile.sram, model.tile.words, model.tile.tables) == \
        (direct.sram, direct.words, direct.tables)


def test_frames_of_the_documentation():
    text = (Path(__file__).parents[3] / "docs" / "bridge.md").read_text()
    lines = re.findall(r"^ +-> ((?:[0-9a-f]{2} )+)", text, re.M)
    begin, ask = (body for line in lines for body in FrameReader().feed(bytes.fromhex(line)))
    assert begin == b"\0\x34\x12" and ask == b"\1" + identity_request(FPGA).records


def test_zeros_at_the_end_of_data_are_not_sent():
    loader = Loader(single(NANO), SystemBinary([TileBinary()]), [])
    request, = Records(NANO, 2048).commands(loader.clear()[0])
    assert request == (b"\6\0\0\0\0", 1, 0)
