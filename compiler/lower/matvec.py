"""A matrix-vector product over tiles: each holds a part of the input and makes one of the output.

``y[n] = fp32(sum over k of x[k] * w[k][n])`` with 16-bit ``x`` (two int8 limbs) and int8 ``w``.
Tile
``i`` holds the input vectors (``lanes`` elements each) ``i, i + tiles, ...``, sends them to all
others, and computes the output vectors ``i, i + tiles, ...``.  Sizes that are no multiple of the
lanes are filled up with zeros.
"""

import numpy as np

from hdl.arch.timing import rules, timing

from ..errors import CompileError
from ..plan import Plan, Region
from ..schedule.listing import schedule
from ..schedule.problem import Edge
from .layout import Memory, near_slices
from .pieces import acc_to_words, load_weights, multiply, receive_word, send_word

__all__ = ["matvec_program"]


def matvec_program(system, weights, x):
    """Lower and schedule ``y = x @ weights``.

    Parameters
    ----------
    system : SystemConfig
        Every two tiles must be joined by a link in each direction.
    weights : array of int8 (K, N)
    x : array of int (K,)
        Each in -32,639 .. 32,639.

    Returns
    -------
    (Plan, Memory)
        The result is symbol ``y`` of every tile: four slices (byte planes of fp32), one word for
        each of its output vectors.

    Raises
    ------
    CompileError
        When shapes or values do not fit, a link is missing, or memory is short.
    """
    lowering = _Matvec(system, np.asarray(weights), np.asarray(x))
    lowering.gather()
    for tile in range(system.tiles):
        lowering.multiply(tile)
    body = schedule(system.tile, lowering.clusters, lowering.edges)
    step = Region(start=0, period=body.end, count=None, issues=body.issues)
    return Plan(Region(0, body.end, 1, children=[step]), system), lowering.memory


def _limbs(x, lanes, blocks):
    """Low and high int8 limbs of ``x`` as bytes: (blocks, 2, lanes)."""
    padded = np.zeros(blocks * lanes, np.int64)
    padded[:len(x)] = x
    low = (padded + 128) % 256 - 128
    high = (padded - low) >> 8
    return np.stack([low, high]).astype(np.int8).view(np.uint8).reshape(2, blocks, lanes) \
        .transpose(1, 0, 2)


class _Matvec:
    def __init__(self, system, weights, x):
        self.system = system
        self.cfg = system.tile
        self.memory = Memory(system)
        self.clusters = []
        self.edges = []
        self._rules = rules(self.cfg)
        if weights.ndim != 2 or weights.dtype != np.int8 or x.shape != weights.shape[:1]:
            raise CompileError(f"Matrix must be int8 (K, N) and the vector (K,), not "
                               f"{weights.dtype} {weights.shape} and {x.shape}")
        if np.abs(x).max(initial=0) > 32639:
            raise CompileError("Vector elements must be in -32639..32639")
        lanes = self.cfg.lanes
        self._k_blocks, self._n_blocks = (-(-size // lanes) for size in weights.shape)
        self._weights = np.zeros((self._k_blocks * lanes, self._n_blocks * lanes), np.int8)
        self._weights[:weights.shape[0], :weights.shape[1]] = weights
        self._x = _limbs(x, lanes, self._k_blocks)
        if not self.cfg.slices("mxm"):
            raise CompileError("Matrix product needs an mxm slice in the floorplan")
        self._units = {mxm: near_slices(self.cfg, mxm, 4) for mxm in self.cfg.slices("mxm")}
        self._x_slices = self._units[self.cfg.slices("mxm")[0]][:2]
        self._x_ready = {}      # (tile, k block, limb) -> the WRITE that put it there, or None
        self._x_at = [self.memory.place(
            "x", tile, self._x_slices, self._k_blocks, self._own_x(tile),
            "limbs (low, high) by slice, one vector a word") for tile in range(system.tiles)]

    def _own_x(self, tile):
        content = np.zeros((2, self._k_blocks, self.cfg.lanes), np.uint8)
        for k in range(tile, self._k_blocks, self.system.tiles):
            content[:, k] = self._x[k]
        return content

    def _add(self, cluster):
        self.clusters.append(cluster)
        return cluster.slots

    def gather(self):
        """Send every input vector from the tile that has it to all others."""
        last_send, last_recv = {}, {}
        for k in range(self._k_blocks):
            source = k % self.system.tiles
            for limb, slice_ in enumerate(self._x_slices):
                for target in range(self.system.tiles):
                    if target != source:
                        self._transfer(k, limb, slice_, source, target, last_send, last_recv)

    def _transfer(self, k, limb, slice_, source, target, last_send, last_recv):
        link = next((link for link in self.system.links
                     if (link.source, link.target) == (source, target)), None)
        if link is None:
            raise CompileError(f"Matrix product needs a link from tile {source} to tile {target}")
        word = slice_, self._x_at[source].address + k
        *_, send = self._add(send_word(self.cfg, f"send x{k}.{limb} to {target}", source, word,
                                       [link.source_port]))
        recv, write = self._add(receive_word(self.cfg, f"receive x{k}.{limb} from {source}", target,
                                             link.target_port, word))
        flight = timing(self.cfg)["send", "SEND"].t_d + link.latency + \
            self.cfg.port(link.source_port).flits(self.cfg.lanes)
        self.edges.append(Edge(send, recv, flight + self._rules.arrival_to_recv))
        for last, slot, key in ((last_send, send, link), (last_recv, recv, link)):
            if key in last:
                self.edges.append(Edge(last[key], slot, 1))
            last[key] = slot
        self._x_ready[target, k, limb] = write

    def multiply(self, tile):
        """All products of one tile, its output vectors dealt out to its MXMs."""
        own = list(range(tile, self._n_blocks, self.system.tiles))
        order = sorted(range(self._k_blocks), key=lambda k: (k % self.system.tiles != tile, k))
        mxms = self.cfg.slices("mxm")
        y_slices = self._units[mxms[0]]
        y = self.memory.place("y", tile, y_slices, max(1, len(own)),
                              meaning="byte planes of fp32 by slice, one vector a word")
        for unit, mxm in enumerate(mxms):
            self._products(tile, mxm, own, range(unit, len(own), len(mxms)), order, y)

    def _products(self, tile, mxm, own, mine, order, y):
        lanes = self.cfg.lanes
        slices = self._units[mxm]
        rules_ = self._rules
        installed, last_act, readers = None, None, {}
        for turn, local in enumerate(mine):
            accumulator = turn % self.cfg.accumulators
            acts = []
            for first, k in enumerate(order):
                block = self._weights[k * lanes:][:lanes, own[local] * lanes:][:, :lanes]
                at = self.memory.place(f"w{k},{own[local]}", tile, slices, lanes // 4,
                                       block.view(np.uint8).reshape(lanes // 4, 4, lanes)
                                       .transpose(1, 0, 2), "row r in slice r % 4, word r // 4")
                loads = [self._add(load_weights(
                    self.cfg, f"weights {k},{own[local]} row {row}", tile, mxm,
                    [(slice_, at.address + row // 4) for slice_ in slices], row))[-1]
                    for row in range(0, lanes, 4)]
                for limb in range(2):
                    act = self._multiply_limb(tile, mxm, k, limb, accumulator, first == 0)
                    if limb == 0:
                        self.edges += [Edge(load, act, rules_.lw_to_install) for load in loads]
                        if installed:
                            self.edges += [Edge(installed, load, rules_.install_to_lw)
                                           for load in loads]
                        installed = act
                        if first == 0 and accumulator in readers:
                            self.edges.append(Edge(readers[accumulator], act, rules_.acc_to_abc))
                    if last_act:
                        self.edges.append(Edge(last_act, act, 1))
                    last_act = act
                    acts.append(act)
            acc, *_ = self._add(acc_to_words(self.cfg, f"y{own[local]}", tile, mxm, accumulator,
                                             y.slices, y.address + local))
            self.edges += [Edge(act, acc, rules_.abc_to_acc) for act in acts]
            readers[accumulator] = acc

    def _multiply_limb(self, tile, mxm, k, limb, accumulator, first):
        word = self._x_slices[limb], self._x_at[tile].address + k
        read, act = self._add(multiply(
            self.cfg, f"x{k}.{limb} on {mxm}", tile, mxm, word, accumulator,
            install=limb == 0, high=limb == 1, clear=first and limb == 0))
        ready = self._x_ready.get((tile, k, limb))
        if ready:
            self.edges.append(Edge(ready, read, self._rules.write_to_read))
        return act
