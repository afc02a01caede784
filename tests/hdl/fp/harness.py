"""Feeds a unit one set of operands every cycle and collects its results."""

from tests.support.pysim import run


def results(dut, operands):
    """Results of a unit for a list of operand sets, in order.

    Parameters
    ----------
    dut : Component
        With a result ``r``, an initiation interval of 1, and ``depth``.
    operands : list of dict
        Port name to value, one set a cycle.

    Returns
    -------
    list of int
        ``r`` as it stands ``dut.depth`` cycles after each set.
    """
    seen = []

    async def drive(ctx):
        for ports in operands:
            for name, value in ports.items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()

    async def collect(ctx):
        async for _, _, r in ctx.tick().sample(dut.r):
            seen.append(r)
            if len(seen) == len(operands) + dut.depth:
                break

    run(dut, drive, collect)
    return seen[dut.depth:]


def first_cycle(dut, before, after):
    """Cycles from a change of the operands to the first change of the result.

    The result of ``before`` must differ from that of ``after``.
    """
    count = 0

    async def bench(ctx):
        nonlocal count
        for name, value in before.items():
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(dut.depth + 20)
        steady = ctx.get(dut.r)
        for name, value in after.items():
            ctx.set(getattr(dut, name), value)
        while ctx.get(dut.r) == steady:
            await ctx.tick()
            count += 1
            assert count < 100, "the result never changes"
            # the operands stay for one cycle only
            for name, value in before.items():
                ctx.set(getattr(dut, name), value)

    run(dut, bench)
    return count
