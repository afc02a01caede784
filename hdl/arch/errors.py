"""The sticky error register: one bit for every class of schedule fault, declared once."""

from amaranth.lib import enum

__all__ = ["Fault", "FAULT_MEANING"]


class Fault(enum.IntEnum):
    """Bit number of each class of fault in a tile's sticky error register."""
    STREAM_INVALID = 0
    STREAM_OVERWRITE = 1
    STREAM_LOST = 2
    STREAM_CONFLICT = 3
    SRAM_COLLISION = 4
    SRAM_ADDRESS = 5
    LINK_BUSY = 6
    FIFO_UNDERFLOW = 7
    FIFO_OVERFLOW = 8
    START_PAST = 9
    HOST_BUSY = 10
    ICU_WORD = 11


FAULT_MEANING = {
    Fault.STREAM_INVALID: "an operand was read where the stream carries no value",
    Fault.STREAM_OVERWRITE: "a result was written over a valid value that was not cleared",
    Fault.STREAM_LOST: "a valid value left the last position of a stream",
    Fault.STREAM_CONFLICT: "two results, or two `last` reads, met on one stream register",
    Fault.SRAM_COLLISION: "a word was read in the cycle in which it was written, or a READ came in "
                          "the cycle behind a GATHER",
    Fault.SRAM_ADDRESS: "an address was outside its slice",
    Fault.LINK_BUSY: "a SEND, FORWARD or RECV met a link that was still sending or was driven "
                     "twice, or two POSTs one link",
    Fault.FIFO_UNDERFLOW: "a RECV or FORWARD found too few vectors in the FIFO",
    Fault.FIFO_OVERFLOW: "a vector arrived at a full FIFO",
    Fault.START_PAST: "a START named a time that was already past",
    Fault.HOST_BUSY: "the host accessed the tile while it was running",
    Fault.ICU_WORD: "a queue met a word that it cannot execute (unknown opcode, one that its ALU "
                    "lacks, REPEAT of nothing, LOOP too deep or with `ends`, more ends than "
                    "LOOPs), ran past its last, or was released from a SYNC whose links are not "
                    "those of the other queues'",
}
