"""What a tile makes of host commands, one command at a time, from the layouts alone."""

from amaranth.hdl import Shape

from hdl.arch import isa
from hdl.arch.host import HostOp, command_layout, start_layout
from hdl.arch.queues import queues


class TileModel:
    """Memories of a tile as dictionaries, filled by command words."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.sram = {}          # (slice, address) -> bytes
        self.words = {}         # (queue name, address) -> int
        self.tables = {}        # (queue name, entry) -> (shift, mask, step)
        self.starts = []
        self.clears = 0

    def play(self, table):
        """Execute commands of `sim.rtl.loader.command_record`; gives the rows that were read."""
        layout = command_layout(self.cfg)
        rows = []
        for row in table:
            values = {}
            for name, field in layout:
                values[name] = int.from_bytes(row[name].tobytes(), "little")
                assert values[name] >> Shape.cast(field.shape).width == 0, name
            rows += self.one(**values)
        return rows

    def one(self, op, select, address, data):
        cfg = self.cfg
        op = HostOp(op)
        slices = range(len(cfg.slices("mem")))
        if op is HostOp.READ:
            assert address < cfg.mem_words
            return [b"".join(self.sram[unit, address] for unit in slices)]
        if op is HostOp.SRAM:
            assert address < cfg.mem_words
            for unit in slices:
                if select >> unit & 1:
                    word = data >> 8 * cfg.lanes * unit & (1 << 8 * cfg.lanes) - 1
                    self.sram[unit, address] = word.to_bytes(cfg.lanes, "little")
        elif op is HostOp.START:
            self.starts.append(tuple(getattr(start_layout.from_bits(data), name)
                                     for name, _ in start_layout))
        elif op is HostOp.CLEAR:
            self.clears += 1
        elif op in (HostOp.WORD, HostOp.TABLE):
            queue = queues(cfg)[select]
            if op is HostOp.WORD:
                assert address < cfg.icu_words and not data >> isa.word_bits(cfg, queue.kind)
                self.words[queue.name, address] = data
            else:
                assert address < isa.TABLE_ENTRIES
                entry = isa.table_layout(cfg, queue.kind).from_bits(data)
                self.tables[queue.name, address] = (entry.shift, entry.mask, entry.step)
        return []
