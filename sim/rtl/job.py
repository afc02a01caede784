"""What the process that asks for a run and the one that simulates tell each other, as files.

``job.json`` and ``job.npz`` go to the simulation; ``result.json`` and ``sram<r>.npz`` come back.
"""

import json
from dataclasses import asdict, dataclass, field

import numpy as np

from hdl.arch import isa
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.manifest import system_from_json, system_to_json
from hdl.arch.queues import queues
from sim.rtl.records import RunRecord

__all__ = ["Job", "load_job", "load_records", "load_sram", "save_job", "save_records", "save_sram"]

#: In place of the number of a run: the program that is loaded first.
_LOADED = -1


@dataclass
class Job:
    """What a simulation is to do.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
        The machine, which may have more tiles than the binary.
    binary : hdl.arch.binary.SystemBinary
        Its SRAM contents are not used.
    sram : list of array
        By tile: contents to load, uint8 of shape (slices, words, lanes).
    runs : list of (int, int)
        First step and number of steps of each run, one behind the other without reset.
    limit : int
        Cycles behind the start at which a run is given up.
    latencies : list of int
        Cycles, by link of the system.
    offsets : list of int
        By tile of the binary: cycles by which it starts later.
    read_sram : bool
        Read the SRAM contents back behind every run.
    patches : list of list of (int, int, int, str)
        For each run, SRAM words that the host writes before it: tile, number of the slice, address,
        contents in hexadecimal digits.  Runs beyond the list have none.
    waves : (int, int), optional
        First and last cycle of every run to write to the VCD.
    reloads : dict of int to hdl.arch.binary.SystemBinary
        By number of a run: a program of as many tiles, whose words and tables are loaded before it
        in place of those there.
    knobs : list of int, optional
        `hdl.arch.packets.Knobs`, where the machine has the conventional network; ``latencies`` are
        then those of its physical links.
    """

    system: object
    binary: object
    sram: list
    runs: list
    limit: int
    latencies: list = field(default_factory=list)
    offsets: list = field(default_factory=list)
    read_sram: bool = True
    patches: list = field(default_factory=list)
    waves: list | None = None
    reloads: dict = field(default_factory=dict)
    knobs: list | None = None


def save_job(job, directory):
    """Write the files of a job."""
    arrays = {f"sram/{number}": contents for number, contents in enumerate(job.sram)}
    for run, binary in {_LOADED: job.binary, **job.reloads}.items():
        arrays |= _program_arrays(job.system.tile, binary, run)
    np.savez(directory / "job.npz", **arrays)
    (directory / "job.json").write_text(json.dumps({
        "system": system_to_json(job.system), "tiles": len(job.binary.tiles), "runs": job.runs,
        "limit": job.limit, "latencies": job.latencies, "offsets": job.offsets,
        "read_sram": job.read_sram, "patches": job.patches, "waves": job.waves, "knobs": job.knobs,
        "reloads": list(job.reloads)}))


def _program_arrays(cfg, binary, run):
    """Words and tables of the program that is loaded before a run, by name."""
    sizes = {queue.name: isa.word_bytes(cfg, queue.kind) for queue in queues(cfg)}
    arrays = {}
    for number, tile in enumerate(binary.tiles):
        for name, words in tile.words.items():
            raw = b"".join(word.to_bytes(sizes[name], "little") for word in words)
            arrays[f"words/{number}/{name}/{run}"] = np.frombuffer(raw, np.uint8)
        for name, table in tile.tables.items():
            arrays[f"table/{number}/{name}/{run}"] = np.array(table, np.int64).reshape(-1, 3)
    return arrays


def load_job(directory):
    """The `Job` that `save_job` wrote."""
    values = json.loads((directory / "job.json").read_text())
    system = system_from_json(values.pop("system"))
    sizes = {queue.name: isa.word_bytes(system.tile, queue.kind) for queue in queues(system.tile)}
    count = values.pop("tiles")
    sram = [None] * count
    programs = {run: SystemBinary([TileBinary() for _ in range(count)])
                for run in (_LOADED, *values.pop("reloads"))}
    with np.load(directory / "job.npz", allow_pickle=False) as arrays:
        for key in arrays.files:
            part, number, *name = key.split("/")
            array = arrays[key]
            if part == "sram":
                sram[int(number)] = array
                continue
            name, run = name
            tile = programs[int(run)].tiles[int(number)]
            if part == "words":
                size = sizes[name]
                tile.words[name] = [int.from_bytes(array[i:i + size].tobytes(), "little")
                                    for i in range(0, len(array), size)]
            else:
                tile.tables[name] = [tuple(entry) for entry in array.tolist()]
    return Job(system=system, binary=programs.pop(_LOADED), sram=sram, reloads=programs, **values)


def save_records(records, directory):
    """Write what the testbench knows of its runs."""
    (directory / "result.json").write_text(json.dumps([asdict(record) for record in records]))


def load_records(directory):
    """The list of `RunRecord` that `save_records` wrote."""
    return [RunRecord(**values) for values in json.loads((directory / "result.json").read_text())]


def save_sram(sram, run, directory):
    """Write the SRAM contents behind a run."""
    np.savez(directory / f"sram{run}.npz", *sram)


def load_sram(run, directory):
    """The list of arrays that `save_sram` wrote."""
    with np.load(directory / f"sram{run}.npz", allow_pickle=False) as arrays:
        return [arrays[f"arr_{tile}"] for tile in range(len(arrays.files))]
