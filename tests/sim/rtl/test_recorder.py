"""Reading recorded files, written here by hand from the documented format."""

import re

import numpy as np
import pytest

from hdl.arch.presets import DEMO, FPGA, NANO
from hdl.arch.queues import link_names, queues
from hdl.arch.trace import fault_places
from sim.rtl.recorder import FILES, TraceError, read_events, read_host, recorder_verilog

END = np.array([0xFFFFFFFF], "<u4").tobytes()


def write(path, records, size):
    """A file of ``records`` (unit, tile, cycle, payload bytes) and its end."""
    raw = b"".join(np.array([unit, tile], "<u2").tobytes() + np.array([cycle], "<u4").tobytes()
                   + payload for unit, tile, cycle, payload in records)
    end = END + np.array([len(records)], "<u4").tobytes()
    path.write_bytes(raw + end + bytes(size - len(end)))


def test_events_of_every_kind(tmp_path, rng):
    word = rng.bytes(NANO.lanes)
    crc_and_index = np.array([0xBEEF, 0], "<u2").tobytes() + np.array([0x12345678], "<u4").tobytes()
    address = np.array([63], "<u4").tobytes()
    write(tmp_path / FILES["issues"], [(9, 3, 0xFFFFFFFE, crc_and_index)], 16)
    write(tmp_path / FILES["writes"], [(2, 1, 7, address + word), (0, 0, 9, address + word)], 16)
    write(tmp_path / FILES["arrivals"], [], 12)
    events = read_events(tmp_path, NANO)
    assert events.issues.tolist() == [(0xFFFFFFFE, 3, 9, 0xBEEF, 0x12345678)]
    assert [row[:4] for row in events.writes.tolist()] == [(7, 1, 2, 63), (9, 0, 0, 63)]
    assert events.writes["data"][0].tobytes() == word
    assert len(events.arrivals) == 0


@pytest.mark.parametrize("cfg", [NANO, DEMO])
def test_vectors_of_the_host_are_put_together_by_tile(tmp_path, rng, cfg):
    flits = cfg.host.flits(cfg.lanes)
    width = -(-cfg.host.bytes // 4) * 4
    vectors = {tile: [rng.bytes(cfg.lanes) for _ in range(3)] for tile in (0, 2)}
    records = []
    for number in range(3):
        for flit in range(flits):
            for tile in (0, 2):     # both tiles send at the same time
                cut = vectors[tile][number][flit * cfg.host.bytes:(flit + 1) * cfg.host.bytes]
                records.append((0, tile, 10 * number + flit, cut.ljust(width, b"\0")))
    write(tmp_path / FILES["host"], records, 8 + width)
    table = read_host(tmp_path, cfg)
    assert [(row["cycle"], row["tile"]) for row in table] == [
        (10 * number + flits - 1, tile) for number in range(3) for tile in (0, 2)]
    for tile, sent in vectors.items():
        assert [row.tobytes() for row in table["data"][table["tile"] == tile]] == sent
    write(tmp_path / FILES["host"], records[:-1], 8 + width)
    if flits > 1:
        with pytest.raises(TraceError, match="the last vector of tile 2 is incomplete"):
            read_host(tmp_path, cfg)


@pytest.mark.parametrize("cfg", [NANO, FPGA, DEMO])
def test_every_unit_is_recorded(cfg):
    text = recorder_verilog(cfg)
    for kind, count in (("issues", len(queues(cfg))), ("writes", len(cfg.slices("mem"))),
                        ("arrivals", len(link_names(cfg))), ("host", 1),
                        ("faults", len(fault_places(cfg)))):
        assert len(re.findall(rf"\$fwrite\(file_{kind}, ", text)) == count
