"""How long vectors wait: plans made by hand, and what the demo model's schedule is made of."""

from dataclasses import replace

import pytest

from compiler.decoder.program import compile_decoder
from compiler.lower.layout import Symbol
from compiler.model import checkpoint
from compiler.plan import Issue, Plan, Region
from compiler.program import Program
from hdl.arch.config import pair, ring
from hdl.arch.presets import NANO
from hdl.arch.timing import link_arrival, rules, timing
from sim.compiling import DEFAULT_MODEL, machine, quantised
from sim.report.slack import Exchange, exchanges, products, spread

LATENCY = 5
AFTER_WRITE = rules(NANO).write_to_read


class Maker:
    """Issues of a plan, with the cycles that distances ask for."""

    def __init__(self):
        self.issues = []

    def issue(self, tile, queue, op, start, index=(), **fields):
        self.issues.append(Issue(tile, queue, op, start, tuple(sorted(fields.items())), index,
                                 ((),) * len(index)))

    def carry(self, tile, source, cycle, target, stream=0, **fields):
        """``source`` (queue, opcode, index) in ``cycle`` to ``target``; gives the cycle of that."""
        (queue, op, index), (to, to_op, to_index) = source, target
        here, there = (NANO.position("c2c" if name.startswith("link") else name.split(".")[0])
                       for name in (queue, to))
        side = "west" if there < here else "east"
        self.issue(tile, queue, op, cycle, index, **fields, **{f"{side}_en": 1, side: stream})
        at = cycle + 1 + abs(there - here)          # READ and RECV: one cycle, then the way
        more = {"links": 1 << int(to[4]), "quad": 0} if to_op == "SEND" else {}
        self.issue(tile, to, to_op, at, to_index, source=stream, source_west=int(there < here),
                   source_last=1, **more)
        return at

    def copy(self, tile, source, cycle, target, **fields):
        """A word (slice, address) to another; gives the cycle of the WRITE."""
        return self.carry(tile, (f"{source[0]}.read", "READ", source[1:]), cycle,
                          (f"{target[0]}.write", "WRITE", target[1:]), **fields)

    def program(self, system, symbols=()):
        end = 1 + max(issue.start for issue in self.issues)
        step = Region(0, end, None, self.issues)
        return Program(system, Plan(Region(0, end, 1, children=[step]), system), None,
                       {f"{symbol.name}@{symbol.tile}": symbol for symbol in symbols})


def _journey(send_wait, use_wait, far, near, there):
    """A word of slice ``far`` is written to ``near``, sent ``send_wait`` cycles late, received into
    ``there``, read ``use_wait`` late."""
    made = Maker()
    made.copy(0, (far, 9), 1, (near, 3))                # an older word, which is not sent
    written = made.copy(0, (far, 0), 4, (near, 3), stream=1)
    read = written + AFTER_WRITE + send_wait
    sent = made.carry(0, (f"{near}.read", "READ", (3,)), read, ("link0.send", "SEND", ()))
    # and a younger one, which the READ in the same cycle does not see
    made.copy(0, (far, 1), read - (written - 4), (near, 3), stream=1)
    received = link_arrival(NANO, 0, LATENCY, sent) + 1
    made.copy(1, (there, 7), received, (near, 0), stream=1)         # what was there before
    kept = made.carry(1, ("link0.recv", "RECV", ()), received, (f"{there}.write", "WRITE", (7,)),
                      quad=0, links=0)
    for late in (20, 0):                                # the first of two uses counts
        made.copy(1, (there, 7), kept + AFTER_WRITE + use_wait + late, (near, late))
    return made, written, sent


@pytest.mark.parametrize("slices", [("mem0", "mem1", "mem2"), ("mem3", "mem2", "mem1")])
@pytest.mark.parametrize(("send_wait", "use_wait"), [(0, 0), (4, 9), (1, 0)])
def test_waits_of_a_journey_made_by_hand(send_wait, use_wait, slices):
    made, written, sent = _journey(send_wait, use_wait, *slices)
    there = slices[-1]
    names = [Symbol("all", 1, (there,), 0, 50), Symbol("part.1", 1, (there,), 6, 2)]
    one, = exchanges(made.program(pair(NANO, latency=LATENCY), names))
    assert one == Exchange("part", (1, there, 7), ("part.1", 1), 0, one.run, sent,
                           written + AFTER_WRITE, send_wait, use_wait, False)


def test_what_was_there_before_and_what_nobody_reads_has_no_wait():
    made = Maker()
    sent = made.carry(0, ("mem1.read", "READ", (3,)), 1, ("link0.send", "SEND", ()))
    made.carry(1, ("link0.recv", "RECV", ()), link_arrival(NANO, 0, LATENCY, sent) + 1,
               ("mem2.write", "WRITE", (7,)), quad=0, links=0)
    one, = exchanges(made.program(pair(NANO, latency=LATENCY)))
    assert (one.name, one.made, one.to_send, one.to_use) == ("no name", None, None, None)


def test_what_a_tile_passes_on_is_named_and_used_where_it_ends():
    system, made = ring(replace(NANO, ports=NANO.ports[:1] * 2), 3), Maker()
    out, onward = (next(link for link in system.links if (link.source, link.target) == ends)
                   for ends in ((0, 1), (1, 2)))
    sent = made.carry(0, ("mem1.read", "READ", (3,)), 1, (f"link{out.source_port}.send", "SEND",
                                                          ()))
    take = link_arrival(NANO, 0, out.latency, sent) + 1
    made.issue(1, f"link{out.target_port}.recv", "FORWARD", take, links=1 << onward.source_port)
    take = link_arrival(NANO, 0, onward.latency, take) + 1
    kept = made.carry(2, (f"link{onward.target_port}.recv", "RECV", ()), take,
                      ("mem2.write", "WRITE", (7,)), quad=0, links=0)
    made.copy(2, ("mem2", 7), kept + AFTER_WRITE + 6, ("mem1", 0))
    found = exchanges(made.program(system, [Symbol("x", 2, ("mem2",), 0, 50)]))
    assert [(one.name, one.tile, one.to_use, one.relayed) for one in found] == \
        [("x", 0, 6, False), ("x", 1, 6, True)]


def test_spread():
    assert spread([]) is None
    assert spread([30, 0, 1, 2, 7, 10, 0, 10, 10, 10]) == pytest.approx((10, 0.2, 8.5, 12.0, 30))


def _sent(sent, made, word, vector, tile=0, run=(1, 0)):
    return Exchange("x", (1, "mem0", word), vector, tile, run, sent, made, 0, 0, False)


def test_products_are_vectors_of_one_name_and_run_until_a_word_comes_again():
    first = [_sent(12, 5, 0, "a"), _sent(20, 18, 1, "b")]           # leaves before b is ready
    again = [_sent(60, 50, 0, "a"), _sent(61, 52, 1, "b")]          # does not
    limbs = [_sent(70, 69, 0, "a", tile=2), _sent(71, 70, 5, "a", tile=2)]     # one vector
    relayed = [one._replace(relayed=True, run=(9, 9)) for one in first]
    found = products(sorted(first + again + limbs + relayed, key=lambda one: one.sent))
    assert [(one.vectors, one.leaves, one.begun, one.done) for one in found] == \
        [(2, 12, 5, 18), (2, 60, 50, 52)]


@pytest.mark.parametrize("tiles", [2, 4])
def test_vectors_of_the_demo_model_leave_as_they_are_made(tiles):
    """Of every product made one vector after the other, the first leaves before the last is ready.

    Those of block rows (`o`, `down`) end all their sums with the last row, within about the cycles
    that one takes to the C2C: there the first leaves before the last could.
    """
    system = machine().restrict(tiles)
    model = quantised(checkpoint.load(DEFAULT_MODEL), DEFAULT_MODEL, system.tile.lanes)
    found = products(exchanges(compile_decoder(system, model, 128)))
    rows = [product for product in found if product.name == "shared.sums"]
    others = [product for product in found if product.name != "shared.sums"]
    assert {product.name for product in others} == \
        {"shared.attended limbs", "shared.gated limbs", "shared.best"}
    # attention and gated network of six layers, and the candidates for the next token
    assert len(others) == tiles * (6 + 6 + 1) and len(rows) == tiles * (6 + 6)
    assert all(product.leaves < product.done for product in others)
    cfg = system.tile
    way = timing(cfg)["mxm_act", "ACC"].t_d + max(cfg.hops(mxm, "c2c") for mxm in cfg.slices("mxm"))
    assert all(product.leaves < product.done + way for product in rows)
