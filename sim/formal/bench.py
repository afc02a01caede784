# amaranth: UnusedElaboratable=no
"""A test bench for a solver: units, inputs that may be anything, and what must always hold."""

from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Cat, ClockDomain, Cover, Fragment, Module, Signal, Value
from amaranth.lib import wiring

__all__ = ["BAD", "Bench", "inputs"]

#: Checks are signals of this prefix; 1 means violated.
BAD = "bad_"


class Bench:
    """Everything is in one clock domain, in reset in the first cycle and whenever the solver likes.

    Registers start with any value, those of the units too: only reset gives them one.

    A bench that is refused before it is complete leaves its module unused, which is no mistake.

    Attributes
    ----------
    m : Module
        For what connects units and for specifications.
    began : Signal
        1 from the second cycle on: reset has been seen.
    """

    def __init__(self):
        self.m = Module()
        self.m.domains.sync = self._domain = ClockDomain("sync")
        self.began = Signal(name="began", reset_less=True)
        self.m.d.sync += self.began.eq(1)
        self._inputs = [self._domain.clk, self._domain.rst]
        self._checks, self._covers = {}, {}
        self.m.d.comb += Assume(self._domain.rst | self.began)

    def free(self, shape, name):
        """A value that may be anything in every cycle."""
        signal = Signal(shape, name=name)
        self._inputs.append(signal)
        return signal

    def constant(self, shape, name):
        """A value that may be anything, and is the same in all cycles."""
        signal, before = self.free(shape, name), Signal(shape, name=f"{name}_before",
                                                        reset_less=True)
        self.m.d.sync += before.eq(signal)
        self.assume(~self.began | (signal == before))
        return signal

    def assume(self, condition):
        """Only runs in which ``condition`` is 1 in all cycles count."""
        self.m.d.comb += Assume(condition)

    def check(self, name, condition):
        """``condition`` must be 1 in all cycles from the first reset on."""
        if name in self._checks:
            raise ValueError(f"A check must have a name of its own, not {name} again")
        self._checks[name] = bad = Signal(name=BAD + name)
        self.m.d.comb += bad.eq(self.began & ~self._bit(condition))

    def cover(self, name, condition):
        """``condition`` must be 1 in some cycle of some run."""
        self._covers[name] = seen = Signal(name=f"seen_{name}")
        self.m.d.comb += seen.eq(self.began & self._bit(condition))

    def _bit(self, condition):
        bit = Signal(name="condition")
        self.m.d.comb += bit.eq(condition)
        return bit

    def place(self, name, unit, mutation=None):
        """Add ``unit`` as submodule ``name``; gives what it drives, by name, its registers first.

        Parameters
        ----------
        mutation : function of (Module, dict of str to Signal), optional
            Adds statements behind those of the unit itself, which they so override: a broken unit.

        Returns
        -------
        (dict of str to Signal, dict of str to Signal)
            Registers, and signals without a register, of the unit and of all below it; the names of
            those below are ``submodule.signal``.
        """
        fragment = Fragment.get(unit, None)
        registers, wires = {}, {}
        _collect(fragment, "", registers, wires)
        if mutation is not None:
            added = Module()
            mutation(added, registers | wires)
            for domain, statements in Fragment.get(added, None).statements.items():
                fragment.add_statements(domain, statements)
        self.m.submodules[name] = fragment
        return registers, wires

    @property
    def checks(self):
        """Names of the checks."""
        return list(self._checks)

    @property
    def covers(self):
        """Names of the covers."""
        return list(self._covers)

    def rtlil(self):
        """The bench as RTLIL of a module ``bench``; nothing can be added behind it."""
        if not self._checks:
            raise ValueError("A bench must check something")
        self.m.d.comb += Assert(~Cat(self._checks.values()).any())
        self.m.d.comb += [Cover(seen) for seen in self._covers.values()]
        return rtlil.convert(self.m, name="bench", ports=self._inputs, emit_src=False)


def inputs(bench, unit, *, but=()):
    """Any values for all inputs of ``unit`` but those whose names are in ``but``."""
    for path, member, value in unit.signature.flatten(unit):
        name = "__".join(map(str, path))
        if member.flow == wiring.In and name not in but:
            value = Value.cast(value)
            bench.m.d.comb += value.eq(bench.free(len(value), name))


def _collect(fragment, path, registers, wires):
    """Signals that ``fragment`` drives, in the order in which it does."""
    unnamed = {}
    for domain, statements in fragment.statements.items():
        found = registers if domain == "sync" else wires
        for signal in (signal for one in statements for signal in one._lhs_signals()):
            name = path + signal.name
            if signal.name.startswith("$"):
                name = f"{path}unnamed_{unnamed.setdefault(id(signal), len(unnamed))}"
            # of wires with one name the first is as good as any to those who ask
            if found.setdefault(name, signal) is not signal and found is registers:
                raise ValueError(f"Two registers have the name {name}: rename one")
    for number, (below, name, _) in enumerate(fragment.subfragments):
        _collect(below, f"{path}{name or number}.", registers, wires)
