"""An AXI4-Stream bus by its rules, as cocotb coroutines: a source, a sink and a monitor.

The rules: a word moves in a cycle in which tvalid and tready are both 1; a source may not wait for
tready before it raises tvalid, and once it is raised, tvalid, tdata and tlast stay until the word
has moved; a sink may do with tready what it likes.
"""

from cocotb import start_soon
from cocotb.triggers import FallingEdge, RisingEdge

__all__ = ["Bus"]


class Bus:
    """Both ports of a device, with random pauses on both sides.

    Parameters
    ----------
    dut : cocotb handle
        Has ``clk``, ``s_tdata`` and so on into the device, ``m_tdata`` and so on out of it.
    rng : numpy.random.Generator
    idle, stall : float
        Probability, in each cycle, that the source does not begin a word, and that the sink is not
        ready.

    Attributes
    ----------
    stall : float
        May be changed.
    waited : int
        Cycles in which the device's word waited for the sink.
    held : int
        Cycles in which the source's word waited for the device.
    """

    def __init__(self, dut, rng, idle=0.0, stall=0.0):
        self.stall = stall
        self.waited = self.held = 0
        self._dut, self._rng, self._idle = dut, rng, idle
        self._packet, self._packets = [], []
        dut.s_tvalid.value = 0
        dut.m_tready.value = 0
        start_soon(self._sink())

    async def send(self, words):
        """A packet of words into the device."""
        dut = self._dut
        for number, word in enumerate(words):
            while self._rng.random() < self._idle:
                await FallingEdge(dut.clk)
            dut.s_tvalid.value, dut.s_tdata.value = 1, word
            dut.s_tlast.value = number == len(words) - 1
            while True:
                await RisingEdge(dut.clk)       # reads as before the edge
                moved = int(dut.s_tready.value)
                await FallingEdge(dut.clk)
                if moved:
                    break
                self.held += 1
            dut.s_tvalid.value = 0
            dut.s_tdata.value = int(self._rng.integers(1 << 32))    # nothing may be read from it
            dut.s_tlast.value = int(self._rng.integers(2))

    async def receive(self, limit):
        """The next packet from the device, as words; an error behind ``limit`` cycles."""
        for _ in range(limit):
            if self._packets:
                return self._packets.pop(0)
            await FallingEdge(self._dut.clk)
        raise AssertionError(f"no packet came within {limit} cycles")

    async def _sink(self):
        """Take words, and see that the device keeps to the rules."""
        dut, offered = self._dut, None
        while True:
            await FallingEdge(dut.clk)
            dut.m_tready.value = int(self._rng.random() >= self.stall)
            await RisingEdge(dut.clk)
            word = None
            if int(dut.m_tvalid.value):
                word = int(dut.m_tdata.value), int(dut.m_tlast.value)
            assert offered is None or word == offered, f"{offered} was offered and became {word}"
            offered = None
            if word is not None and int(dut.m_tready.value):
                self._packet.append(word[0])
                if word[1]:
                    self._packets.append(self._packet)
                    self._packet = []
            elif word is not None:
                self.waited += 1
                offered = word
