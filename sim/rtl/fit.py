"""Whether a program can run on a machine that was built, and on which of its links."""

from hdl.arch.binary import BinaryError

__all__ = ["link_latencies"]


def link_latencies(machine, system, latencies=None):
    """Latency of every link of ``machine`` when it runs a program made for ``system``.

    Parameters
    ----------
    machine : hdl.arch.config.SystemConfig
        What was built.
    system : hdl.arch.config.SystemConfig
        What the program needs: tiles of the same configuration, and a subset of the links.
    latencies : list of int, optional
        Cycles, by link of ``system``, instead of its own.

    Returns
    -------
    list of int
        Cycles, by link of ``machine``; links that the program does not have keep their own.

    Raises
    ------
    hdl.arch.binary.BinaryError
        Naming what the machine lacks.
    """
    if system.tile.digest != machine.tile.digest:
        raise BinaryError(f"Program was made for tiles of configuration {system.tile.digest}, the "
                          f"machine has {machine.tile.digest}: compile it for this machine")
    if system.tiles > machine.tiles:
        raise BinaryError(f"Program needs {system.tiles} tiles, the machine has {machine.tiles}")
    if system.host_latency != machine.host_latency:
        raise BinaryError(f"Program was made for a host link of {system.host_latency} cycles, that "
                          f"of the machine has {machine.host_latency}")
    if latencies is None:
        latencies = [link.latency for link in system.links]
    wanted = {_ends(link): latency for link, latency in zip(system.links, latencies, strict=True)}
    known = {_ends(link) for link in machine.links}
    for link in system.links:
        if _ends(link) not in known:
            raise BinaryError(f"Program needs a link from port {link.source_port} of tile "
                              f"{link.source} to port {link.target_port} of tile {link.target}, "
                              "which the machine lacks: compile it for this machine")
    return [wanted.get(_ends(link), link.latency) for link in machine.links]


def _ends(link):
    return link.source, link.source_port, link.target, link.target_port
