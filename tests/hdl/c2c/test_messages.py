"""What a C2c tells the conventional network: messages announced, vectors taken."""

from dataclasses import replace

from hdl.arch.config import PortConfig
from hdl.arch.encoding import encode
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.c2c import C2c
from tests.support.pysim import run

PORTS = 3
CFG = replace(NANO, sync=True, ports=(PortConfig(bytes=4, fifo=8),) * PORTS)
HOST = PORTS


def issue(ctx, dut, cycle_issues):
    """Issue (queue kind, link, opcode, fields), and nothing on the other queues."""
    for k in range(PORTS + 1):
        for kind in ("send", "recv"):
            ctx.set(getattr(dut, f"{kind}{k}").valid, 0)
    for kind, link, op, fields in cycle_issues:
        ctx.set(getattr(dut, f"{kind}{link}").valid, 1)
        ctx.set(getattr(dut, f"{kind}{link}").word, encode(CFG, kind, op, **fields))


def announced(ctx, dut):
    posts = [getattr(dut, f"post{k}") for k in range(PORTS)]
    return [ctx.get(post.vectors) if ctx.get(post.valid) else None for post in posts]


def test_posts_reach_their_links_and_occupy_none():
    dut = C2c(CFG)

    async def bench(ctx):
        cases = [
            ([("send", 1, "POST", {"links": 0b101, "vectors": 9})], [9, None, 9], 0),
            ([("send", HOST, "POST", {"links": 0b010, "vectors": 1023})], [None, 1023, None], 0),
            ([("send", 0, "POST", {"links": 0b111, "vectors": 0})], [None] * 3, 0),
            # from two queues: to different links both, to one the lower queue's
            ([("send", 2, "POST", {"links": 0b001, "vectors": 3}),
              ("send", 0, "POST", {"links": 0b110, "vectors": 4})], [3, 4, 4], 0),
            ([("send", 2, "POST", {"links": 0b011, "vectors": 3}),
              ("send", 1, "POST", {"links": 0b110, "vectors": 4})], [3, 4, 4], 1),
            # beside a SEND on the same link
            ([("send", 0, "SEND", {"links": 0b001}),
              ("send", 1, "POST", {"links": 0b001, "vectors": 2})], [2, None, None], 0)]
        for issues, expected, busy in cases:
            issue(ctx, dut, issues)
            assert announced(ctx, dut) == expected
            taps = [link for link in range(PORTS + 1) if ctx.get(getattr(dut, f"tap{link}").en)]
            assert taps == [link for _, link, op, _ in issues if op == "SEND"]
            await ctx.tick()
            issue(ctx, dut, [])
            assert announced(ctx, dut) == [None] * PORTS
            assert ctx.get(dut.faults) == busy << Fault.LINK_BUSY
            sends = [issue for issue in issues if issue[2] == "SEND"]
            assert [ctx.get(getattr(dut, f"tx{k}").valid) for k in range(PORTS)] == \
                [bool(sends), 0, 0]
            await ctx.tick()

    run(dut, bench)


def test_taken_counts_what_leaves_each_fifo():
    dut = C2c(CFG)

    async def bench(ctx):
        for k, vectors in ((0, 6), (2, 1)):
            for _ in range(vectors):
                ctx.set(getattr(dut, f"rx{k}").valid, 1)
                await ctx.tick()
            ctx.set(getattr(dut, f"rx{k}").valid, 0)
        for issues, expected in [
                ([("recv", 0, "RECV", {"quad": 1}), ("recv", 2, "RECV", {"quad": 1})], [4, 0, 0]),
                ([("recv", 0, "RECV", {}), ("recv", 1, "RECV", {})], [1, 0, 0]),
                ([("recv", 0, "FORWARD", {"links": 2}), ("recv", 2, "RECV", {})], [1, 0, 1]),
                ([("recv", 0, "RECV", {})], [0, 0, 0]), ([], [0, 0, 0])]:
            issue(ctx, dut, issues)
            assert [ctx.get(getattr(dut, f"taken{k}")) for k in range(PORTS)] == expected
            await ctx.tick()

    run(dut, bench)
