"""The table of a queue: what turns LOOP indices into terms of its instructions' indices."""

from amaranth.hdl import Mux, Signal, signed, unsigned
from amaranth.lib import data
from amaranth.lib.memory import Memory

from .arch import isa

__all__ = ["TermTable"]


class TermTable:
    """The table of a queue: written by the host, read wherever a word names an entry."""

    def __init__(self, m, cfg, kind, load):
        if not (isa.KINDS[kind].terms or isa.KINDS[kind].predicate):
            return
        self._layout = isa.table_layout(cfg, kind)
        m.submodules.table = self._memory = Memory(
            shape=unsigned(self._layout.size), depth=isa.TABLE_ENTRIES, init=[])
        write = self._memory.write_port()
        m.d.comb += [write.addr.eq(load.address), write.data.eq(load.data),
                     write.en.eq(load.table_en)]

    def term(self, m, selected, index, name, bits=None):
        """Registered term ``(index >> shift) & mask`` and step of entry ``selected``.

        Entry 0 gives the term 0, whatever is loaded.  ``bits`` is the width of what they are for:
        higher bits have no effect on it and are left out.
        """
        port = self._memory.read_port(domain="comb")
        entry = data.View(self._layout, port.data)
        term_s1 = Signal(bits or isa.COUNTER_BITS, name=f"{name}_term_s1", reset_less=True)
        step_s1 = Signal(signed(bits) if bits else entry.step.shape(), name=f"{name}_step_s1",
                         reset_less=True)
        m.d.comb += port.addr.eq(selected)
        m.d.sync += [term_s1.eq(Mux(selected == 0, 0, index >> entry.shift & entry.mask)),
                     step_s1.eq(entry.step)]
        return term_s1, step_s1
