"""Program order to edges: clusters are added one after the other, and what each touches says which
earlier ones it must wait for.

The rules are those of one machine state each: SRAM words, accumulators, shadow and active weights,
activation buffers, ALU entries, lane maps and links.  Everything else may move freely.
"""

from collections import defaultdict
from itertools import count

from hdl.arch.isa import Operand
from hdl.arch.timing import rules

from ..errors import CompileError
from ..schedule.problem import Edge
from .layout import Memory
from .links import Links

__all__ = ["Builder"]

_ENTRY = Operand.ENTRY.value


class _State:
    """Last writers of something and its readers since."""

    __slots__ = ("readers", "writers")

    def __init__(self):
        self.writers = []
        self.readers = []


class Builder:
    """Clusters of one region in program order, with the edges between them.

    Parameters
    ----------
    system : SystemConfig
    memory : Memory
        Shared by all regions of a program.

    Attributes
    ----------
    clusters : list of Cluster
    edges : list of Edge
    operation : str
        Name of the tensor operation that clusters added from now on belong to.
    operations : list of str
        That of each cluster.
    """

    _links_of = Links

    def __init__(self, system, memory=None):
        self.system = system
        self.cfg = system.tile
        self.memory = memory or Memory(system)
        self.clusters = []
        self.operation = ""
        self.operations = []
        self.edges = []
        self._rules = rules(self.cfg)
        self._words = defaultdict(_State)
        self._sums = defaultdict(_State)
        self._entries = defaultdict(_State)
        self._buffers = defaultdict(_State)
        self._maps = defaultdict(_State)
        self._loads = defaultdict(list)         # mxm -> LWs since the last install
        self._acts = defaultdict(list)          # mxm -> ABCs since and with the last install
        self._next = defaultdict(int)           # mxm -> accumulator
        self._pending = defaultdict(dict)       # mxm -> clusters that will read each accumulator
        self._needed = defaultdict(int)         # mxm -> accumulators, where they are too few
        self._links = self._links_of(system, self.edges)

    def add(self, cluster):
        """Append ``cluster``; returns its slots."""
        self.clusters.append(cluster)
        self.operations.append(self.operation)
        for slot in sorted(cluster.slots, key=lambda slot: slot.offset):
            handler = getattr(self, f"_{slot.op.lower()}", None)
            if handler:
                handler(slot)
            if "entry" in slot.fields or self._reads_entries(slot):
                self._alu(slot)
        for tile, mxm, number in {(slot.tile, slot.queue.split(".")[0], slot.index[0])
                                  for slot in cluster.slots if slot.op == "ACC"}:
            self._count_reader(self._pending[tile, mxm], number)
        return cluster.slots

    @staticmethod
    def _count_reader(pending, number):
        left = pending.pop(number, 0) - 1
        if left > 0:
            pending[number] = left

    def part(self, first, last):
        """Clusters ``first`` to ``last - 1`` with the edges between them: a finished `Builder`."""
        part = Builder(self.system, self.memory)
        part.clusters = self.clusters[first:last]
        part.operations = self.operations[first:last]
        mine = set(map(id, part.clusters))
        part.edges += [edge for edge in self.edges if id(edge.source.cluster) in mine
                       and id(edge.target.cluster) in mine]
        return part

    def turning(self, first, second, last, level):
        """Clusters of the loop of ``level``, of which two iterations were added: ``first`` to
        ``second - 1``, and the same again, with the next one's addresses, up to ``last - 1``.

        Returns
        -------
        (Builder, list of Edge)
            One iteration, and the edges from it to the next, as if both ended in it.

        Raises
        ------
        CompileError
            When the two differ.
        """
        here, there = self.clusters[first:second], self.clusters[second:last]
        if [_issued(cluster, level, 1) for cluster in here] != \
                [_issued(cluster, level, 0) for cluster in there]:
            raise CompileError("Iterations of a loop must be of equal instructions")
        slots = {id(slot): same for cluster, other in zip(here, there, strict=True)
                 for slot, same in zip(other.slots, cluster.slots, strict=True)}
        mine = set(map(id, here))
        carried = [Edge(edge.source, slots[id(edge.target)], edge.distance) for edge in self.edges
                   if id(edge.source.cluster) in mine and id(edge.target) in slots]
        return self.part(first, second), carried

    def accumulator(self, tile, mxm, readers=1):
        """The next accumulator of an MXM, in turn, that holds no sum which is still to be read.

        Parameters
        ----------
        readers : int
            Clusters that read the sum before another may take its place.

        Returns
        -------
        int
            Where all of them do, one that there is not, which `check_accumulators` refuses.
        """
        pending, there = self._pending[tile, mxm], self.cfg.accumulators
        if len(pending) >= there:
            number = next(number for number in count(there) if number not in pending)
            self._needed[tile, mxm] = max(self._needed[tile, mxm], number + 1)
        else:
            number = self._next[tile, mxm]
            while number in pending:
                number = (number + 1) % there
            self._next[tile, mxm] = (number + 1) % there
        pending[number] = readers
        return number

    def check_accumulators(self):
        """Raise CompileError when an MXM needs more accumulators at once than it has."""
        if self._needed:
            (tile, mxm), needed = max(self._needed.items(), key=lambda item: item[1])
            raise CompileError(f"Tile {tile} {mxm} needs {needed} accumulators at once, it has "
                               f"{self.cfg.accumulators}: raise TileConfig.accumulators, or use "
                               "more tiles or fewer sequences")

    def _edge(self, source, target, distance):
        if source.cluster is not target.cluster:
            self.edges.append(Edge(source, target, distance))

    def crossings(self):
        """See `Links.crossings`."""
        return self._links.crossings()

    def reorder_wires(self):
        """See `Links.reorder`."""
        self._links.reorder(self.clusters)

    def _reads(self, state, slot, after_write):
        for writer in state.writers:
            self._edge(writer, slot, after_write)
        state.readers.append(slot)

    def _writes(self, state, slot, after_read, after_write=1):
        for reader in state.readers:
            self._edge(reader, slot, after_read)
        for writer in state.writers:
            self._edge(writer, slot, after_write)
        state.writers, state.readers = [slot], []

    def _word(self, slot):
        return self._words[slot.key or (slot.tile, slot.queue.split(".")[0], slot.index[0])]

    def _read(self, slot):
        self._reads(self._word(slot), slot, self._rules.write_to_read)

    _gather = _read

    def _write(self, slot):
        self._writes(self._word(slot), slot, 0)

    def _lw(self, slot):
        mxm = slot.tile, slot.queue.split(".")[0]
        for act in self._acts[mxm]:
            if act.fields["install"]:
                self._edge(act, slot, self._rules.install_to_lw)
        self._loads[mxm].append(slot)

    def _abc(self, slot):
        mxm = slot.tile, slot.queue.split(".")[0]
        if slot.fields["install"]:
            for load in self._loads[mxm]:
                self._edge(load, slot, self._rules.lw_to_install)
            for act in self._acts[mxm]:
                self._edge(act, slot, 1)
            self._loads[mxm], self._acts[mxm] = [], []
        elif not self._acts[mxm]:
            raise CompileError(f"{slot.cluster.name}: no weights are installed")
        else:
            self._edge(self._acts[mxm][0], slot, 1)
        self._acts[mxm].append(slot)
        total = self._sums[(*mxm, slot.index[0])]
        if slot.fields["clear"]:
            self._writes(total, slot, self._rules.acc_to_abc)
        else:
            for writer in total.writers[:1]:
                self._edge(writer, slot, 1)
            total.writers.append(slot)
        kept = self._buffers[(*mxm, slot.index[1])]
        if slot.fields.get("buffered"):
            self._reads(kept, slot, self._rules.keep_to_buffered)
        if slot.fields.get("keep"):
            self._writes(kept, slot, 1)

    def _acc(self, slot):
        mxm = slot.tile, slot.queue.split(".")[0]
        total = self._sums[(*mxm, slot.index[0])]
        self._reads(total, slot, self._rules.abc_to_acc)

    @staticmethod
    def _reads_entries(slot):
        return slot.fields.get("a") == _ENTRY or slot.fields.get("b") == _ENTRY

    def _alu(self, slot):
        t_d = slot.cluster.times(slot).t_d
        for operand in "ab":
            if slot.fields.get(operand) == _ENTRY:
                entry = slot.tile, slot.queue, slot.fields[f"{operand}_source"]
                self._reads(self._entries[entry], slot, t_d)
        if slot.fields.get("keep"):
            entry = slot.tile, slot.queue, slot.fields["entry"]
            state = self._entries[entry]
            if state.writers and not state.readers:
                raise CompileError(f"{slot.cluster.name}: entry {slot.fields['entry']} of tile "
                                   f"{slot.tile} {slot.queue} holds what "
                                   f"{state.writers[0].cluster.name} kept and nothing has read")
            self._writes(state, slot, 1 - t_d)

    def _map(self, slot):
        self._writes(self._maps[slot.tile, slot.queue, slot.fields["map"]], slot, 1)

    def _permute(self, slot):
        self._reads(self._maps[slot.tile, slot.queue, slot.fields["map"]], slot,
                    self._rules.map_to_permute)

    def _send(self, slot):
        self._links.send(slot)

    def _recv(self, slot):
        self._links.take(slot)
        self._links.send(slot)

    _forward = _recv


def _issued(cluster, level, turn):
    """Shape of a cluster, and its instructions with the indices of iteration ``turn``."""
    return cluster.shape, [(slot.tile, slot.queue, slot.op, slot.fields, slot.terms, [
        base + turn * sum(term.step for term in terms if term.level == level)
        for base, terms in zip(slot.index, slot.terms or ((),) * len(slot.index), strict=True)])
        for slot in cluster.slots]
