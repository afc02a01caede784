"""An ICU whose instruction memory is open: any word may come, whatever the address."""

from types import SimpleNamespace

from amaranth.hdl import Signal

from hdl.arch import isa
from hdl.icu import Icu

__all__ = ["OpenIcu"]


class OpenIcu(Icu):
    """`Icu` without its instruction memory.

    What holds for words that come without regard to the address holds for every program.

    Attributes
    ----------
    fetched : Signal
        To be driven: the word that is read in this cycle, if one is.
    memory : SimpleNamespace
        ``addr``, ``en``: the read; ``data``: the fetch register.
    """

    def __init__(self, cfg, kind):
        super().__init__(cfg, kind, trace=False)
        bits = isa.word_bits(cfg, kind)
        self.fetched = Signal(bits, name="fetched")
        self.memory = SimpleNamespace(
            addr=Signal(range(cfg.icu_words), name="fetch_address"), en=Signal(name="fetch"),
            data=Signal(bits, name="fetch_register", reset_less=True))

    def _memory(self, m):
        with m.If(self.memory.en):
            m.d.sync += self.memory.data.eq(self.fetched)
        return self.memory
