"""Packets of bytes into and out of streams, with pauses on both sides."""

__all__ = ["get_packet", "put_packet"]


async def put_packet(ctx, port, values, rng=None, idle=0.0):
    """Send a packet; before each byte the sender pauses with probability ``idle`` a cycle."""
    for number, value in enumerate(values):
        while rng is not None and rng.random() < idle:
            await ctx.tick()
        ctx.set(port.payload.data, value)
        ctx.set(port.payload.last, number == len(values) - 1)
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)


async def get_packet(ctx, port, rng=None, stall=0.0, limit=20_000):
    """The bytes of the next packet; see that what is offered stays until it is taken."""
    found, offered = [], None
    for _ in range(limit):
        ready = rng is None or rng.random() >= stall
        ctx.set(port.ready, ready)
        _, _, valid, data, last = await ctx.tick().sample(port.valid, port.payload.data,
                                                          port.payload.last)
        assert offered is None or (valid, data, last) == offered
        offered = (valid, data, last) if valid and not ready else None
        if valid and ready:
            found.append(data)
            if last:
                ctx.set(port.ready, 0)
                return bytes(found)
    raise AssertionError(f"no packet within {limit} cycles")
