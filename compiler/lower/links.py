"""What links ask of a graph: vectors arrive before they are taken, FIFOs have room for them, and
they go over a wire one behind the other."""

from collections import defaultdict
from itertools import pairwise

from hdl.arch.timing import departure, link_arrival, rules

from ..errors import CompileError
from ..schedule.problem import Edge
from .wires import in_time

__all__ = ["Links"]


class Links:
    """Everything that crosses the links of a system, and the edges that it asks for.

    Parameters
    ----------
    system : SystemConfig
    edges : list of Edge
        The graph's, which get more.
    """

    def __init__(self, system, edges):
        self._system = system
        self._cfg = system.tile
        self._edges = edges
        self._to_recv = rules(self._cfg).arrival_to_recv
        self._orders = []                       # edges that an order on wires alone asks for
        self._sends = {}                        # (tile, port) -> last SEND
        self._recvs = {}                        # (tile, port) -> last RECV
        self._flights = defaultdict(list)       # (tile, port) -> (SEND, arrival) of each vector
        self._takes = defaultdict(list)         # (tile, port) -> RECV of each vector

    def send(self, slot):
        """``slot`` puts its vectors onto the wires of its links, behind those before it.

        Raises
        ------
        CompileError
            When a link leads nowhere.
        """
        for port in range(len(self._cfg.ports)):
            if slot.fields.get("links", 0) >> port & 1:
                self._depart(slot, port)

    def _depart(self, slot, port):
        link = self._system.outgoing(slot.tile, port)
        if link is None:
            raise CompileError(f"{slot.cluster.name}: link {port} of tile {slot.tile} leads "
                               "nowhere")
        if (slot.tile, port) in self._sends:
            self._order(self._sends[slot.tile, port], slot, 1)
        self._sends[slot.tile, port] = slot
        t_d = departure(self._cfg, slot.cluster.unit(slot).kind)
        end = link.target, link.target_port
        flights, takes = self._flights[end], self._takes[end]
        for vector in range(_vectors(slot)):
            flights.append((slot, link_arrival(self._cfg, port, link.latency, 0, vector, t_d)))
            before = len(flights) - 1 - self._room(end)
            if 0 <= before < len(takes):
                self._leave_room(takes[before], *flights[-1])

    def take(self, slot):
        """``slot`` takes its vectors from its link, behind those before it.

        Raises
        ------
        CompileError
            When nothing was sent that it could take.
        """
        end, vectors = (slot.tile, slot.cluster.unit(slot).unit), _vectors(slot)
        flights, takes = self._flights[end], self._takes[end]
        takes += [slot] * vectors
        if len(flights) < len(takes):
            raise CompileError(f"{slot.cluster.name}: nothing was sent on link {end[1]} to tile "
                               f"{end[0]}")
        send, flight = flights[len(takes) - 1]
        self._arrive(send, slot, flight)
        room = self._room(end)
        for later in flights[len(takes) - vectors + room:len(takes) + room]:
            self._leave_room(slot, *later)
        if end in self._recvs:
            self._order(self._recvs[end], slot, 1)
        self._recvs[end] = slot

    def crossings(self):
        """By tile and port at which vectors arrive: list of (SEND, RECV), one for each vector.

        Raises
        ------
        CompileError
            When something that is sent is not taken.
        """
        found = {}
        for end, flights in self._flights.items():
            takes = self._takes[end]
            if len(takes) != len(flights):
                raise CompileError(f"Tile {end[0]} takes {len(takes)} of {len(flights)} vectors "
                                   f"that arrive on link {end[1]}")
            found[end] = [(send, recv) for (send, _), recv in zip(flights, takes, strict=True)]
        return found

    def reorder(self, clusters):
        """Let vectors take the wires as they come, not in the order of the program; where that
        cannot be the latter stays.

        Parameters
        ----------
        clusters : list of Cluster
            The graph's.

        Raises
        ------
        CompileError
            As `crossings`.
        """
        gone = set(map(id, self._orders))
        edges = [edge for edge in self._edges if id(edge) not in gone]
        found = in_time(clusters, edges, self.crossings(), self._room)
        if found is None:
            return
        self._edges[:], self._orders = edges, []
        for end, order in found.items():
            flights = [self._flights[end][vector] for vector in order]
            takes = [self._takes[end][vector] for vector in order]
            sends = [send for send, _ in flights]
            for one in (sends, takes):
                for before, behind in pairwise(one):
                    self._order(before, behind, 1)
            for recv, later in zip(takes, flights[self._room(end):], strict=False):
                self._leave_room(recv, *later)

    def _room(self, end):
        """Vectors that the FIFO at an end holds."""
        return self._cfg.port(end[1]).fifo

    def _arrive(self, send, recv, flight):
        """What ``send`` sends has arrived before ``recv`` takes it."""
        self._edge(send, recv, flight + self._to_recv)

    def _leave_room(self, recv, send, flight):
        """What ``recv`` takes has left the FIFO before what ``send`` sends arrives."""
        self._order(recv, send, 1 - flight)

    def _edge(self, source, target, distance):
        if source.cluster is not target.cluster:
            self._edges.append(Edge(source, target, distance))
            return self._edges[-1]
        return None

    def _order(self, source, target, distance):
        edge = self._edge(source, target, distance)
        if edge:
            self._orders.append(edge)


def _vectors(slot):
    """Vectors that a slot sends or takes."""
    return 4 if slot.fields.get("quad") else 1
