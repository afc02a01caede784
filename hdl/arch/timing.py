"""When things happen, in cycles after issue: the one table that hardware and compiler read.

Cycle, position and hop.  In cycle ``k`` every stream has at most one value at every position.  A
slice at position ``p`` reads what is there in ``k``.  What it writes in ``k`` replaces what would
have moved on, so it is at the neighbour (``p + 1`` eastward, ``p - 1`` westward) in ``k + 1`` and
at distance ``d`` in ``k + d``.  An instruction issued in ``k`` reads its stream operands in
``k + t_skew`` and writes its stream results in ``k + t_d``; a consumer ``d`` hops away that is
issued in ``k'`` must have ``k' + t_skew' = k + t_d + d``.
"""

from functools import cache
from typing import NamedTuple

from .isa import KINDS

__all__ = ["Timing", "timing", "Rules", "rules", "ICU_LEAD", "START_LEAD", "ACC_STAGES",
           "NOTIFY_TO_ISSUE", "SYNC_TO_ISSUE", "adder_stages", "link_arrival", "of", "unit_ops"]

#: Cycles from a word in the ICU's fetch register to its issue: term, product, sum.
ICU_LEAD = 3
#: Cycles from the last cycle in which a START command is still in time to the start: compare, fetch
#: and `ICU_LEAD`.
START_LEAD = ICU_LEAD + 2
#: Cycles from the SYNC of the queue that parks last to the first issue behind it, in all queues,
#: where the messages are there and the SYNC has no ``wait``.
SYNC_TO_ISSUE = 2
#: The same from the notification, where the queues have been parked before.
NOTIFY_TO_ISSUE = ICU_LEAD + 1
#: Stages of the accumulator's conversion to fp32: normalise, round, pack.
ACC_STAGES = 3


class Timing(NamedTuple):
    """``t_d``: issue to result on the stream (to the SRAM write of a WRITE, to the first flit's
    predecessor on the wire for SEND and FORWARD; that of what a RECV passes on is `departure`).
    ``t_skew``: issue to the reading of operands."""
    t_d: int
    t_skew: int = 0


class Rules(NamedTuple):
    """Least distances in cycles between issues that share state other than streams."""
    write_to_read: int      #: WRITE to a READ of the same word that sees it
    lw_to_install: int      #: LW to the ABC that installs its rows
    install_to_lw: int      #: installing ABC to the next LW (negative: that LW may come before)
    keep_to_buffered: int   #: ABC that keeps to the ABC that takes from the buffer
    abc_to_acc: int         #: ABC to the ACC that sees it
    acc_to_abc: int         #: ACC to the next ABC on the same accumulator (negative: before)
    map_to_permute: int     #: MAP to the PERMUTE that uses it
    gather_to_read: int     #: GATHER to the next READ of its slice
    arrival_to_recv: int    #: arrival on a link to the RECV or FORWARD that takes it


def adder_stages(lanes):
    """Pipeline stages of the MXM's sum over ``lanes`` products: radix 4."""
    stages, terms = 0, lanes
    while terms > 1:
        stages, terms = stages + 1, -(-terms // 4)
    return stages


def of(cfg, queue, op):
    """`Timing` of opcode ``op`` (its name) in ``queue`` (a `queues.Queue`)."""
    if queue.kind == "alu":
        return Timing(t_d=cfg.alus[queue.unit].depth)
    return timing(cfg)[queue.kind, op]


@cache
def timing(cfg):
    """Timing of every unit opcode by (queue kind, opcode name), but for those of the ALUs: there
    it is the depth of the ALU (`of`)."""
    reduce_levels = (cfg.lanes - 1).bit_length()
    return {
        ("mem_read", "READ"): Timing(t_d=1),
        ("mem_read", "GATHER"): Timing(t_d=2),
        ("mem_write", "WRITE"): Timing(t_d=1),
        **{("reduce", op): Timing(t_d=reduce_levels * cfg.reduce_depth)
           for op in ("SUM", "MAX", "MIN")},
        **{("sxm", op): Timing(t_d=2)
           for op in ("SHIFT", "ROTATE", "DISTRIBUTE", "MAP", "PERMUTE")},
        ("mxm_weight", "LW"): Timing(t_d=2),
        ("mxm_act", "ABC"): Timing(t_d=3 + adder_stages(cfg.lanes)),
        ("mxm_act", "ACC"): Timing(t_d=ACC_STAGES + 1),
        ("send", "SEND"): Timing(t_d=0),
        ("send", "POST"): Timing(t_d=0),
        ("recv", "RECV"): Timing(t_d=1),
        ("recv", "FORWARD"): Timing(t_d=0),
    }


@cache
def rules(cfg):
    """`Rules` of a configuration."""
    abc = timing(cfg)["mxm_act", "ABC"].t_d
    return Rules(write_to_read=2, lw_to_install=2, install_to_lw=-1, keep_to_buffered=1,
                 abc_to_acc=abc, acc_to_abc=1 - abc, map_to_permute=2, gather_to_read=2,
                 arrival_to_recv=1)


def link_arrival(cfg, port, latency, issue, vector=0, t_d=0):
    """Cycle in which vector ``vector`` (0..3) of a SEND enters the FIFO at the far end."""
    return issue + t_d + (vector + 1) * cfg.port(port).flits(cfg.lanes) + latency


def departure(cfg, kind):
    """``t_d`` of what leaves on links from a queue of ``kind`` (``"send"``, ``"recv"``): a RECV
    passes on as a FORWARD does."""
    return timing(cfg)[kind, "SEND" if kind == "send" else "FORWARD"].t_d


def unit_ops():
    """(kind, opcode name) of everything that issues, in declaration order."""
    return [(kind.name, op.name) for kind in KINDS.values() for op in kind.formats]
