"""State other than streams: SRAM words, weights, sums and link FIFOs."""

from collections import defaultdict

from hdl.arch.timing import rules, timing

from ..errors import VerifyError

__all__ = ["check_links", "check_mxm", "check_sram"]


def check_sram(cfg, events, binary):
    """Every READ sees a word that was loaded or written before, and none meets its WRITE."""
    loaded = set()
    for tile, content in enumerate(binary.tiles):
        for slice_, runs in content.sram.items():
            for address, data in runs.items():
                loaded |= {(tile, slice_, address + i) for i in range(len(data) // cfg.lanes)}
    writes = {}
    t_write = timing(cfg)["mem_write", "WRITE"].t_d
    for event in events:
        if event.queue.kind in ("mem_read", "mem_write") and \
                event.indices["address"] >= cfg.mem_words:
            raise VerifyError(f"Cycle {event.cycle}: tile {event.tile} {event.queue.name} address "
                              f"{event.indices['address']} is outside the slice")
        if event.op == "WRITE" and event.writes:
            cell = event.tile, event.queue.slice, event.indices["address"]
            writes.setdefault(cell, set()).add(event.cycle + t_write)
    ports = {}
    for event in events:
        if event.queue.kind == "mem_read":
            _check_port(event, ports)
        if event.op == "READ":
            cell = event.tile, event.queue.slice, event.indices["address"]
            times = writes.get(cell, ())
            where = f"Cycle {event.cycle}: tile {event.tile} {cell[1]} reads word {cell[2]}"
            if event.cycle in times:
                raise VerifyError(f"{where} in the cycle in which it is written")
            if cell not in loaded and not any(at < event.cycle for at in times):
                raise VerifyError(f"{where}, which nobody has written")


def _check_port(event, ports):
    """A READ uses the port in its issue cycle, a GATHER in the next."""
    key = event.tile, event.queue.name, event.cycle + (event.op == "GATHER")
    if key in ports:
        raise VerifyError(f"Cycle {event.cycle}: tile {event.tile} {event.queue.name} needs the "
                          "port in the cycle of the GATHER before it")
    ports[key] = event


def check_mxm(cfg, events):
    """Weights are complete when installed; sums are complete and begun when read."""
    t_d = timing(cfg)["mxm_act", "ABC"].t_d
    ahead = rules(cfg).lw_to_install
    units = defaultdict(lambda: ([], [], []))
    for event in events:
        if event.op in ("LW", "ABC", "ACC"):
            units[event.tile, event.queue.slice][("LW", "ABC", "ACC").index(event.op)].append(event)
    for (tile, mxm), (loads, acts, accs) in units.items():
        where = f"tile {tile} {mxm}"
        _check_weights(cfg, where, loads, acts, ahead)
        _check_sums(where, acts, accs, t_d)
        kept = set()
        for act in acts:
            if act.fields["buffered"] and act.indices["activation"] not in kept:
                raise VerifyError(f"Cycle {act.cycle}: {where} takes activation "
                                  f"{act.indices['activation']}, which nobody kept")
            if act.fields["keep"]:
                kept.add(act.indices["activation"])


def _check_weights(cfg, where, loads, acts, ahead):
    position, fresh, installed = 0, set(), False
    for act in acts:
        if not act.fields["install"]:
            if not installed:
                raise VerifyError(f"Cycle {act.cycle}: {where} multiplies before weights are "
                                  "installed")
            continue
        while position < len(loads) and loads[position].cycle <= act.cycle - ahead:
            load = loads[position]
            fresh |= {(load.indices["row"] + i) % cfg.lanes
                      for i in range(1 << load.fields["count_log2"])}
            position += 1
        if len(fresh) < cfg.lanes:
            raise VerifyError(f"Cycle {act.cycle}: {where} installs weights of which "
                              f"{cfg.lanes - len(fresh)} rows are not loaded")
        fresh, installed = set(), True


def _check_sums(where, acts, accs, t_d):
    history = defaultdict(list)     # accumulator -> (visible from, number of the sum)
    numbers = defaultdict(int)
    for act in acts:
        accumulator = act.indices["accumulator"]
        numbers[accumulator] += act.fields["clear"]
        history[accumulator].append((act.cycle + t_d, numbers[accumulator]))
    for acc in accs:
        accumulator = acc.indices["accumulator"]
        sums = [number for visible, number in history[accumulator] if visible <= acc.cycle]
        if not sums or not sums[-1]:
            raise VerifyError(f"Cycle {acc.cycle}: {where} reads accumulator {accumulator}, whose "
                              "sum was never begun")
        if any(number == sums[-1] for visible, number in history[accumulator]
               if visible > acc.cycle):
            raise VerifyError(f"Cycle {acc.cycle}: {where} reads accumulator {accumulator} before "
                              "its sum is complete")


def check_links(system, events):
    """Wires carry one vector at a time; FIFOs neither run empty nor over."""
    cfg = system.tile
    busy_until, arrivals, takes = {}, defaultdict(list), defaultdict(list)
    for event in events:
        if event.op in ("RECV", "FORWARD"):
            takes[event.tile, event.queue.unit] += [event.cycle] * (4 if event.fields.get("quad")
                                                                    else 1)
        if event.op in ("SEND", "FORWARD"):
            vectors = 4 if event.fields.get("quad") else 1
            for port in range(len(cfg.ports) + 1):
                if event.fields["links"] >> port & 1:
                    _depart(system, event, port, vectors, busy_until, arrivals)
    for key in set(takes) | set(arrivals):
        _check_fifo(cfg, key, sorted(arrivals[key]), sorted(takes[key]))


def _depart(system, event, port, vectors, busy_until, arrivals):
    cfg = system.tile
    flits = cfg.port(port).flits(cfg.lanes)
    start = event.cycle + timing(cfg)[event.queue.kind, event.op].t_d
    if start < busy_until.get((event.tile, port), 0):
        raise VerifyError(f"Cycle {event.cycle}: tile {event.tile} link {port} is still sending")
    busy_until[event.tile, port] = start + vectors * flits
    link = system.outgoing(event.tile, port)
    if link is None and port < len(cfg.ports):
        raise VerifyError(f"Cycle {event.cycle}: tile {event.tile} sends on link {port}, which "
                          "leads nowhere")
    if link:
        arrivals[link.target, link.target_port] += [start + (j + 1) * flits + link.latency
                                                    for j in range(vectors)]


def _check_fifo(cfg, key, arrivals, takes):
    where = f"tile {key[0]} link {key[1]}"
    if len(takes) < len(arrivals):
        raise VerifyError(f"Of {len(arrivals)} vectors that arrive at {where}, {len(takes)} are "
                          "taken")
    for i, take in enumerate(takes):
        if i >= len(arrivals) or take <= arrivals[i]:
            raise VerifyError(f"Cycle {take}: {where} has no vector to take")
        full = i + cfg.port(key[1]).fifo
        if full < len(arrivals) and arrivals[full] <= take:
            raise VerifyError(f"Cycle {arrivals[full]}: a vector arrives at the full FIFO of "
                              f"{where}")
