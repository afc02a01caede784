"""State other than streams, issue by issue: SRAM words, weights, sums and link FIFOs."""

from bisect import bisect_right
from collections import defaultdict

from hdl.arch.timing import departure, rules, timing

from .faults import NEVER, fault

__all__ = ["check_links", "check_mxm", "check_sram"]


def check_sram(cfg, events, binary):
    """Every READ sees a word that was loaded or written before, and none meets its WRITE.

    What a GATHER reads depends on data, so of it only the port is checked.

    Returns
    -------
    list of Fault
    """
    loaded = set()
    for tile, content in enumerate(binary.tiles):
        for slice_, runs in content.sram.items():
            for address, data in runs.items():
                loaded |= {(tile, slice_, address + i) for i in range(len(data) // cfg.lanes)}
    writes, faults, ports = {}, [], set()
    t_write = timing(cfg)["mem_write", "WRITE"].t_d
    for event in events:
        if event.op == "READ" or event.op == "WRITE" and event.writes:
            address = event.indices["address"]
            if address >= cfg.mem_words:
                faults.append(fault("address", event.cycle, tile=event.tile,
                                    queue=event.queue.name, address=address))
            elif event.op == "WRITE":
                cell = event.tile, event.queue.slice, address
                writes.setdefault(cell, set()).add(event.cycle + t_write)
        if event.op == "GATHER":
            ports.add((event.tile, event.queue.name, event.cycle + 1))
    first = {cell: min(times) for cell, times in writes.items()}
    for event in events:
        if event.op != "READ":
            continue
        if (event.tile, event.queue.name, event.cycle) in ports:
            faults.append(fault("port", event.cycle, tile=event.tile, queue=event.queue.name))
        cell = event.tile, event.queue.slice, event.indices["address"]
        what = {"tile": cell[0], "mem": cell[1], "address": cell[2]}
        if event.cycle in writes.get(cell, ()):
            faults.append(fault("collision", event.cycle, **what))
        elif cell[2] < cfg.mem_words and cell not in loaded and \
                first.get(cell, NEVER) >= event.cycle:
            faults.append(fault("unwritten", event.cycle, **what))
    return faults


def check_mxm(cfg, events):
    """Weights are complete when installed; sums are complete and begun when read.

    Returns
    -------
    list of Fault
    """
    units, faults = defaultdict(lambda: ([], [], [])), []
    for event in events:
        if event.op in ("LW", "ABC", "ACC"):
            units[event.tile, event.queue.slice][("LW", "ABC", "ACC").index(event.op)].append(event)
    for (tile, mxm), (loads, acts, accs) in units.items():
        where = {"tile": tile, "mxm": mxm}
        faults += _check_weights(cfg, where, loads, acts)
        faults += _check_sums(cfg, where, acts, accs)
        faults += _check_activations(where, acts)
        for event in acts + accs:
            for name, size in (("accumulator", cfg.accumulators), ("activation", cfg.activations)):
                if event.indices[name] >= size and (name == "accumulator" or event.op == "ABC"
                                                    and (event.fields["buffered"]
                                                         or event.fields["keep"])):
                    faults.append(fault("outside", event.cycle, **where, what=name,
                                        number=event.indices[name]))
    return faults


def _check_activations(where, acts):
    kept = set()
    for act in acts:
        number = act.indices["activation"]
        if act.fields["buffered"] and number not in kept:
            yield fault("activation", act.cycle, **where, number=number)
        if act.fields["keep"]:
            kept.add(number)


def _check_weights(cfg, where, loads, acts):
    position, fresh, installed = 0, (set(), set()), False
    for act in acts:
        if not act.fields["install"]:
            if not installed:
                yield fault("multiply", act.cycle, **where)
            continue
        while position < len(loads) and \
                loads[position].cycle <= act.cycle - rules(cfg).lw_to_install:
            fields = loads[position].fields
            fresh[fields["columns"]].update((loads[position].indices["row"] + i) % cfg.lanes
                                            for i in range(min(1 << fields["count_log2"], 4)))
            position += 1
        missing = cfg.lanes - max(map(len, fresh))
        if missing:
            yield fault("install", act.cycle, **where, missing=missing)
        fresh, installed = (set(), set()), True


def _check_sums(cfg, where, acts, accs):
    """An ACC in ``a`` sees the products of ABCs up to ``a - t_d``; the next one must clear."""
    t_d = timing(cfg)["mxm_act", "ABC"].t_d
    visible, clears = defaultdict(list), defaultdict(list)
    for act in acts:
        number = act.indices["accumulator"]
        visible[number].append(act.cycle + t_d)
        clears[number].append(act.fields["clear"])
    done = set()
    for acc in accs:
        number = acc.indices["accumulator"]
        following = bisect_right(visible[number], acc.cycle)
        if 1 not in clears[number][:following]:
            yield fault("begun", acc.cycle, **where, number=number)
        if following < len(visible[number]) and not clears[number][following] and \
                (number, following) not in done:
            done.add((number, following))
            yield fault("sum", visible[number][following], **where, number=number, at=acc.cycle)


def check_links(system, events):
    """Wires carry one vector at a time; FIFOs neither run empty nor over.

    Returns
    -------
    list of Fault
    """
    cfg = system.tile
    wires, faults = _Wires(system), []
    takes = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.cycle, event.tile, event.queue)):
        vectors = 4 if event.fields.get("quad") else 1
        if event.op in ("RECV", "FORWARD"):
            takes[event.tile, event.queue.unit] += [event.cycle] * vectors
        if event.queue.kind in ("send", "recv"):
            for port in range(len(cfg.ports) + 1):
                if event.fields["links"] >> port & 1:
                    faults += wires.depart(event, port, vectors)
    for key in set(takes) | set(wires.arrivals):
        faults += _check_fifo(cfg, key, sorted(wires.arrivals[key]), sorted(takes[key]))
    return faults


class _Wires:
    def __init__(self, system):
        self._system = system
        self._busy_until = {}
        self._links = {(link.source, link.source_port): link for link in system.links}
        self.arrivals = defaultdict(list)

    def depart(self, event, port, vectors):
        cfg = self._system.tile
        flits = cfg.port(port).flits(cfg.lanes)
        start = event.cycle + departure(cfg, event.queue.kind)
        if start < self._busy_until.get((event.tile, port), 0):
            yield fault("busy", event.cycle, tile=event.tile, link=port)
        self._busy_until[event.tile, port] = start + vectors * flits
        link = self._links.get((event.tile, port))
        if link:
            self.arrivals[link.target, link.target_port] += [
                start + (j + 1) * flits + link.latency for j in range(vectors)]
        elif port < len(cfg.ports):
            yield fault("nowhere", event.cycle, tile=event.tile, link=port)


def _check_fifo(cfg, key, arrivals, takes):
    where = {"tile": key[0], "link": key[1]}
    for i, take in enumerate(takes):
        if i >= len(arrivals) or take <= arrivals[i]:
            yield fault("empty", take, **where)
    depth = cfg.port(key[1]).fifo
    for i, arrival in enumerate(arrivals[depth:]):
        if i >= len(takes) or takes[i] >= arrival:
            yield fault("full", arrival, **where)
    if len(takes) < len(arrivals):
        yield fault("left", NEVER, **where, arrived=len(arrivals), taken=len(takes))
