"""Sequence numbers: each request executed once, whatever is said again, lost or damaged."""

from hdl.arch.bridge import Result
from hdl.bridge.session import Session
from tests.hdl.bridge.streams import get_packet, put_packet
from tests.support.pysim import run

BUFFER = 64


def closed(sequence, result, count):
    return bytes([sequence, result.value, 0]) + count.to_bytes(2, "little")


class Bench:
    """Bodies go in one by one; what is executed is answered with a count of executions."""

    def __init__(self):
        self.dut = Session(BUFFER)
        self.executed = []

    async def execute(self, ctx):
        """Takes requests for ever; an answer has as many bytes as its request."""
        while True:
            request = await get_packet(ctx, self.dut.request, limit=1_000_000)
            self.executed.append(request)
            count = len(self.executed).to_bytes(2, "little")
            await put_packet(ctx, self.dut.answer, request + bytes(2) + count)

    async def say(self, ctx, body):
        """Give a body, or damage for None; returns what is sent back."""
        if body is None:
            ctx.set(self.dut.damaged, 1)
            await ctx.tick().until(self.dut.heard)
            ctx.set(self.dut.damaged, 0)
        else:
            await put_packet(ctx, self.dut.body, body)
        return await get_packet(ctx, self.dut.reply)

    def run(self, steps):
        """``steps``: pairs of a body and what must come back."""
        async def bench(ctx):
            for number, (body, expected) in enumerate(steps):
                assert await self.say(ctx, body) == expected, number

        run(self.dut, bench, background=[self.execute])
        return self.executed


def answer(sequence, rest, count):
    return bytes([sequence, 0]) + rest + bytes(2) + count.to_bytes(2, "little")


def test_a_request_that_comes_again_is_answered_again_and_not_executed():
    first, second = answer(1, b"ab", 1), answer(2, b"c", 2)
    assert Bench().run([
        (b"\1ab", first), (b"\1ab", first), (b"\1zzz", first),
        (b"\2c", second), (None, closed(0, Result.DAMAGED, 0)), (b"\2c", second),
        (b"\3", answer(3, b"", 3)),
    ]) == [b"\0ab", b"\0c", b"\0"]


def test_another_number_is_refused_with_the_expected_one():
    assert Bench().run([
        (b"\2x", closed(2, Result.SEQUENCE, 1)), (b"\xffx", closed(255, Result.SEQUENCE, 1)),
        (b"\1x", answer(1, b"x", 1)), (b"\3x", closed(3, Result.SEQUENCE, 2)),
        (b"\1", answer(1, b"x", 1)),
    ]) == [b"\0x"]


def test_numbers_go_from_255_to_1():
    steps = [(bytes([number]), answer(number, b"", number)) for number in range(1, 256)]
    steps += [(b"\1", answer(1, b"", 256)), (b"\xff", closed(255, Result.SEQUENCE, 2)),
              (b"\1", answer(1, b"", 256))]
    assert len(Bench().run(steps)) == 256


def test_number_0_begins_anew():
    assert Bench().run([
        (b"\1x", answer(1, b"x", 1)), (b"\2x", answer(2, b"x", 2)),
        (b"\0\x34\x12", closed(0, Result.OK, 0x1234)),
        (b"\2x", closed(2, Result.SEQUENCE, 1)), (b"\1x", answer(1, b"x", 3)),
        # what is too short or too long begins nothing
        (b"\0", closed(0, Result.DAMAGED, 0)), (b"\0\1", closed(0, Result.DAMAGED, 0)),
        (b"\0\1\2\3", closed(0, Result.DAMAGED, 0)), (b"\2y", answer(2, b"y", 4)),
    ]) == [b"\0x", b"\0x", b"\0x", b"\0y"]
