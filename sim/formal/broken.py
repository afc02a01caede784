"""Broken units: statements that override those of a unit, one small fault each.

Each is a function of (Module, signals by name): see `Bench.place`.
"""

from hdl.arch.errors import Fault

__all__ = ["a_flit_twice", "a_later_repetition", "a_loop_too_long", "a_wait_from_data",
           "an_underflow_takes", "changed_on_the_way", "issues_while_busy", "lost_unseen",
           "port_from", "stays_when_cleared", "valid_from_address", "valid_from_received",
           "valid_from_vector"]


def a_later_repetition(m, s):
    """A REPEAT is a cycle late when one repetition is left."""
    with m.If(s["left"] == 1):
        m.d.sync += s["rest"].eq(s["rest"])


def a_loop_too_long(m, s):
    """A LOOP in a LOOP keeps the count of the one before it."""
    with m.If(s["_active"] & s["_done"] & s["is_loop"] & (s["_depth"] == 1)):
        m.d.sync += s["left_1"].eq(s["left_1"])


def a_wait_from_data(m, s):
    """What a unit word waits depends on its highest bit."""
    with m.If(s["is_unit"] & s["_word"][-1]):
        m.d.sync += s["rest"].eq(s["rest"])


def valid_from_vector(direction):
    """A value whose lowest bit is 1 loses its validity."""
    def broken(m, s):
        with m.If(s[f"{direction}_data"][0]):
            m.d.sync += s[f"out_{direction}__valid"][0].eq(0)
    return broken


def stays_when_cleared(direction):
    """`last` leaves stream 3 as it is."""
    def broken(m, s):
        with m.If(s[f"cleared_{direction}"][3]):
            m.d.sync += s[f"out_{direction}__valid"][3].eq(1)
    return broken


def changed_on_the_way(direction):
    """The highest bit of all streams is lost."""
    def broken(m, s):
        m.d.sync += s[f"{direction}_data"][-1].eq(0)
    return broken


def lost_unseen(m, s):
    """A value that leaves the last position is no fault."""
    m.d.sync += s["faults"][Fault.STREAM_LOST].eq(0)


def valid_from_address(m, s):
    """A GATHER of a word far outside gives nothing."""
    with m.If(s["gather_s1"] & s["gather_address_s1"][31]):
        m.d.sync += s["port__east_en"].eq(0)


def valid_from_received(m, s):
    """A vector behind one with a lowest bit of 1 is not put."""
    with m.If(s["received_0"][0]):
        m.d.sync += s["port0__east_en"].eq(0)


def port_from(register, port):
    """While the lowest bit of a register is 1, nothing is put on an eastward stream."""
    def broken(m, s):
        with m.If(s[register][0]):
            m.d.comb += s[f"{port}__east_en"].eq(0)
    return broken


def issues_while_busy(m, s):
    """The receive queue of link 0 is never refused."""
    m.d.comb += s["refused_2"].eq(0)


def an_underflow_takes(m, s):
    """A RECV of too few vectors skips one."""
    with m.If(s["underflow"]):
        m.d.sync += s["head"].eq(s["head"] + 1)


def a_flit_twice(m, s):
    """One flit of a quad is sent again."""
    with m.If(s["count"] == 6):
        m.d.sync += s["rest"].eq(s["rest"])
