"""Vectors from tile to tile: whoever is on the way passes them on as they come in.

A *source* is an `At`, or the sum (str, int) of an MXM and accumulator.
"""

from ..lower.chain import At, Chain

__all__ = ["deliver", "exchange", "receive", "take"]


def take(chain, source):
    """The value of a source."""
    return chain.read(source) if isinstance(source, At) else chain.acc(*source)


def exchange(builder, machine, name, owner, places, sources=None, readers=None):
    """Copy words from the tile that has them to others, one vector each.

    Parameters
    ----------
    owner : int
        The tile that has them.
    places : list by tile of lists of At
        Single words or quads, the same on every tile.
    sources : list, optional
        Where the owner takes them from, if not from its places.
    readers : list of int, optional
        Tiles that need them; all if not given.
    """
    others = set(range(machine.system.tiles) if readers is None else readers) - {owner}
    for number, source in enumerate(sources or places[owner]):
        deliver(builder, machine, f"{name}.{number}", owner, source,
                {tile: places[tile][number] for tile in sorted(others)})


def deliver(builder, machine, name, owner, source, targets):
    """Send a vector to some tiles.

    Parameters
    ----------
    owner : int
        The tile that has it.
    source : At or (str, int)
        One stream or four.
    targets : dict of int to At or callable
        Where each puts it; or ``keep(chain, value)``, which takes a vector of one stream there.
    """
    ports = machine.ports(owner, targets)
    if ports:
        send = Chain(builder.cfg, f"send {name}", owner)
        value = take(send, source)
        send.send(value, ports)
        builder.add(send.cluster())
        receive(builder, machine, name, owner, value.width, targets)


def receive(builder, machine, name, owner, width, targets):
    """What `deliver` does once a vector of ``width`` streams has been sent to `Machine.ports`."""
    hops = machine.spread(owner, targets)
    onward = {tile: [link.source_port for link in links] for tile, links in hops}
    for link in (link for _, links in hops for link in links):
        _receive(builder, f"receive {name}", link, width, targets.get(link.target),
                 onward.get(link.target, ()))


def _receive(builder, name, link, width, keep, onward):
    """Keep what comes over ``link``, and pass it ``onward`` (ports) as it comes in."""
    def chain():
        return Chain(builder.cfg, name, link.target)

    if keep is None:
        passing = [chain() for _ in range(width)]
        for plane in passing:
            plane.forward(link.target_port, onward)
    elif isinstance(keep, At):
        parts = [keep] if not onward else [At((slice_,), keep.address, keep.terms, keep.key)
                                           for slice_ in keep.slices]
        passing = []
        for part in parts:
            passing.append(chain())
            value = passing[-1].recv(link.target_port, quad=len(part.slices) == 4, links=onward)
            passing[-1].write(value, part)
    else:
        passing = [chain()]
        keep(passing[0], passing[0].recv(link.target_port, links=onward))
    for one in passing:
        builder.add(one.cluster())
