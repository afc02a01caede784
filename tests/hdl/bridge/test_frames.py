"""Frames: what was sent comes through or is damaged, and what follows is not touched by it."""

from binascii import crc_hqx

import pytest

from hdl.bridge.frames import FrameReceiver, FrameTransmitter
from tests.hdl.bridge.streams import get_packet, put_packet
from tests.support.pysim import run

BUFFER = 32
SPECIAL = bytes([0x7E, 0x7D, 0x5E, 0x5D, 0x00, 0xFF])


def framed(body):
    """A frame by the text of `hdl.arch.bridge`."""
    checked = body + crc_hqx(body, 0xFFFF).to_bytes(2, "big")
    return b"\x7e" + b"".join(bytes([0x7D, byte ^ 0x20]) if byte in (0x7D, 0x7E) else bytes([byte])
                              for byte in checked) + b"\x7e"


def received(line):
    """Bodies, and None for damage, of bytes that come one every 90 cycles."""
    dut, found = FrameReceiver(BUFFER), []

    async def bench(ctx):
        for byte in line:
            ctx.set(dut.data, byte)
            ctx.set(dut.valid, 1)
            await ctx.tick()
            ctx.set(dut.valid, 0)
            await ctx.tick().repeat(90)

    async def take(ctx):
        body = []
        ctx.set(dut.body.ready, 1)
        ctx.set(dut.heard, 1)
        async for _, _, valid, byte, last, damaged in ctx.tick().sample(
                dut.body.valid, dut.body.payload.data, dut.body.payload.last, dut.damaged):
            if damaged:
                found.append(None)
            if valid:
                body.append(byte)
                if last:
                    found.append(bytes(body))
                    body.clear()

    run(dut, bench, background=[take])
    return found


def test_bodies_come_through(rng):
    bodies = [SPECIAL, b"\x7e", b"\x7d" * 3, b"\0", bytes(BUFFER - 2),
              *(rng.bytes(int(rng.integers(1, BUFFER - 1))) for _ in range(8))]
    assert received(b"".join(map(framed, bodies))) == bodies
    shared = b"".join(framed(body)[:-1] for body in bodies) + b"\x7e"     # one flag between two
    assert received(shared) == bodies


@pytest.mark.parametrize("stall", [0.0, 0.7])
def test_transmitter_sends_frames(rng, stall):
    dut = FrameTransmitter()
    bodies = [SPECIAL, b"\x7e", *(rng.bytes(int(rng.integers(1, 12))) for _ in range(6))]
    # Bodies whose CRC has to be escaped.
    bodies += [b for b in (bytes([i, j]) for i in range(256) for j in range(4))
               if {0x7D, 0x7E} & set(crc_hqx(b, 0xFFFF).to_bytes(2, "big"))][:3]
    line = []

    async def bench(ctx):
        for body in bodies:
            await put_packet(ctx, dut.body, body, rng, stall / 2)
        for _ in range(100):
            await ctx.tick()

    async def take(ctx):
        while True:
            ready = rng.random() >= stall
            ctx.set(dut.bytes.ready, ready)
            _, _, valid, byte = await ctx.tick().sample(dut.bytes.valid, dut.bytes.payload)
            if valid and ready:
                line.append(byte)

    run(dut, bench, background=[take])
    assert bytes(line) == b"".join(map(framed, bodies))


def test_one_wrong_bit_is_damage_and_the_next_frame_comes_through(rng):
    body, after = rng.bytes(6), b"next"
    whole = framed(body)
    for place in range(len(whole)):
        bit = int(rng.integers(8))
        line = bytearray(whole)
        line[place] ^= 1 << bit
        found = received(bytes(line) + framed(after))
        assert body not in found and found[-1] == after, (place, bit)
        # Without its first flag a frame is nothing, all else is noticed.
        assert None in found or place == 0


def test_a_lost_byte_is_damage(rng):
    body, after = rng.bytes(5), b"next"
    whole = framed(body)
    for place in range(1, len(whole) - 1):
        assert received(whole[:place] + whole[place + 1:] + framed(after)) == [None, after]


@pytest.mark.parametrize(("line", "expected"), [
    (b"\x7e\x7e\x7e", []),                                              # empty frames
    (b"\x7e\xff\xff\x7e", [None]),                                      # the CRC of nothing
    (b"\x7e\x00\x7e", [None]),
    (b"noise" + framed(b"a"), [b"a"]),
    (framed(b"a") + b"noise" + framed(b"b"), [b"a", None, b"b"]),
    (framed(bytes(BUFFER - 1)) + framed(b"b"), [None, b"b"]),           # longer than the buffer
    (framed(bytes(2 * BUFFER - 2)) + framed(b"b"), [None, b"b"]),
    (framed(bytes(3 * BUFFER)) + framed(b"b"), [None, b"b"]),
    (framed(b"a")[:-1] + b"\x7d\x7e" + framed(b"b"), [None, b"b"]),     # ends within an escape
])
def test_what_is_no_frame(line, expected):
    assert received(line) == expected


def test_what_comes_while_a_body_is_given_is_lost_without_harm(rng):
    dut = FrameReceiver(BUFFER)
    bodies = [b"first", b"second", b"third"]

    async def bench(ctx):
        async def drive(line):
            for byte in line:
                ctx.set(dut.data, byte)
                ctx.set(dut.valid, 1)
                await ctx.tick()
                ctx.set(dut.valid, 0)
                await ctx.tick().repeat(3)

        await drive(framed(bodies[0]) + framed(bodies[1])[:5])
        assert await get_packet(ctx, dut.body) == bodies[0]
        await drive(framed(bodies[1])[5:] + framed(bodies[2]))
        assert await get_packet(ctx, dut.body) == bodies[2]

    run(dut, bench)
