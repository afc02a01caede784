"""The top of a simulation: the system, a player and a recorder for every tile, and few ports.

cocotb drives ``clk``, ``rst`` and the link latencies, starts a batch of commands (``play``), waits,
and reads the status.  Everything that happens every cycle happens in Verilog.
"""

from amaranth.hdl import Shape
from amaranth.utils import bits_for

from hdl import system as hdl_system
from hdl.arch.host import TIME_BITS, command_layout, row_bits
from hdl.arch.packets import NetworkFault
from hdl.arch.queues import queues
from hdl.packet.node import knob_members
from hdl.signatures import FAULT_BITS
from sim.rtl.player import player_verilog
from sim.rtl.probes import probes_verilog
from sim.rtl.recorder import FILES, end_of_file, recorder_verilog, trace_bits

__all__ = ["LATENCY_BITS", "TOP", "top_verilog"]

#: Name of the top-level module.
TOP = "oncycle_top"
#: Bits of each link's latency in the port ``latencies``.
LATENCY_BITS = 16


def _tile(cfg, tile, trace):
    """Wires, player and recorder of a tile, and its connections to the system."""
    wires = {"command": command_layout(cfg).size, "read_data": row_bits(cfg), "running": 1,
             "errors": FAULT_BITS, "halted": len(queues(cfg)), "cycle": TIME_BITS}
    bits = trace_bits(cfg)
    wires |= bits if trace else {"host": bits["host"]}
    lines = [f"  wire [{width - 1}:0] {name}{tile};" for name, width in wires.items()]
    connections = [f".tile{tile}_{name}({name}{tile})" for name in wires if name != "host"]
    flit = 8 * cfg.host.bytes
    connections += [f".tile{tile}_host_tx__valid(host{tile}[0])",
                    f".tile{tile}_host_tx__data(host{tile}[{flit}:1])",
                    f".tile{tile}_host_rx__valid(1'd0)", f".tile{tile}_host_rx__data({flit}'d0)"]
    events = ", ".join(f".{kind}({kind}{tile}), .file_{kind}(file_{kind}), "
                       f".count_{kind}(count_{kind}[{tile}])" for kind in FILES)
    lines.append(f"""  oncycle_player #(.TILE({tile})) player{tile} (
    .clk(clk), .rst(rst), .play(play), .batch(batch), .playing(playing_by_tile[{tile}]),
    .cut(cut_by_tile[{tile}]), .command(command{tile}), .read_data(read_data{tile}));""")
    if trace:
        lines.append(f"""  oncycle_recorder #(.TILE({tile})) recorder{tile} (
    .clk(clk), .recording(recording), .cycle(cycle{tile}),
    {events});""")
    return lines, connections


#: Ports and logic of a ``waves`` build: what is dumped, in cycles counted from the start time.
_WAVES_PORTS = """
  input [31:0] waves_start,
  input [31:0] waves_first,
  input [31:0] waves_last,
  output dumping,"""
_WAVES = """
  wire [31:0] event_cycle = cycle - waves_start;
  assign dumping = recording && event_cycle >= waves_first && event_cycle <= waves_last;"""


def _network(network):
    """Ports of the top for the conventional network, and connections of the system to them."""
    ports = [f"  input [{Shape.cast(member.shape).width - 1}:0] {name},"
             for name, member in knob_members(network).items()]
    ports.append(f"  output [{len(NetworkFault) * network.system.tiles - 1}:0] network_faults,")
    names = [*knob_members(network), "network_faults"]
    return "\n" + "\n".join(ports), [f".{name}({name})" for name in names]


def top_verilog(system, max_latency, *, packets=None, trace=True, waves=None):
    """SystemVerilog text of `TOP` and of what it needs beside the system.

    Parameters
    ----------
    system : hdl.arch.config.SystemConfig
    max_latency : int
        As of `hdl.system.System`.
    packets : hdl.arch.packets.PacketNetwork, optional
        What is between the tiles, instead of the system's links.
    trace : bool
        Whether the tiles have trace ports to record; without, the files hold no events.
    waves : int, optional
        The visible tile of a ``waves`` build.

    Returns
    -------
    str
        Its ports: ``clk``, ``rst``; ``play``, ``batch``, ``playing``, ``cut`` (see
        `sim.rtl.player`); ``latencies``, `LATENCY_BITS` for each link of the system or physical
        link of the network, and with it its knobs and ``network_faults``; ``cycle``
        of tile 0; ``finish`` (ends the recording) and ``finished``; ``running``, ``errors`` and
        ``halted`` of all tiles, tile 0 lowest; ``idle``: no tile is running.  With ``waves``:
        ``waves_start``, a time of the cycle counter, and the window ``waves_first`` to
        ``waves_last`` in cycles from there, in which ``dumping`` is 1; the wire ``event_cycle``,
        and those of `sim.rtl.probes`.
    """
    cfg, tiles = system.tile, system.tiles
    lines, connections = [], [".clk(clk)", ".rst(rst)"]
    for tile in range(tiles):
        some, more = _tile(cfg, tile, trace)
        lines += some
        connections += more
    width = bits_for(max_latency)
    links = len(system.links if packets is None else packets.links)
    connections += [f".latency{link}(latencies[{LATENCY_BITS * link} +: {width}])"
                    for link in range(links)]
    ports = window = seen = untraced = traced = ""
    if packets is not None:
        ports, more = _network(packets)
        connections += more
    connections = ",\n    ".join(connections)
    packed = {name: ", ".join(f"{name}{tile}" for tile in reversed(range(tiles)))
              for name in ("errors", "halted", "running")}
    opened, ended = [], []
    for kind, file in FILES.items():
        opened += [f'    file_{kind} = $fopen({{directory, "/{file}"}}, "wb");']
        total = " + ".join(f"count_{kind}[{tile}]" for tile in range(tiles)) if trace else "0"
        ended += [f'      $fwrite(file_{kind}, "%u", {end_of_file(cfg, kind, total)});',
                  f"      $fclose(file_{kind});"]
    if waves is not None:
        ports += _WAVES_PORTS
        window = _WAVES
        seen = probes_verilog(cfg, f"system.tile{waves}") + "\n"
        untraced, traced = (f"/* verilator tracing_{state} */\n" for state in ("off", "on"))
    top = f"""module {TOP} (
  input clk,
  input rst,
  input play,
  input [31:0] batch,
  input finish,
  input [{LATENCY_BITS * max(1, links) - 1}:0] latencies,{ports}
  output playing,
  output cut,
  output [{TIME_BITS - 1}:0] cycle,
  output reg finished,
  output [{tiles - 1}:0] running,
  output [{FAULT_BITS * tiles - 1}:0] errors,
  output [{len(queues(cfg)) * tiles - 1}:0] halted,
  output idle
);
  string directory;
{chr(10).join(f"  int file_{kind} = 0, count_{kind} [0:{tiles - 1}];" for kind in FILES)}
  reg recording, seen_reset;     // inputs are undefined until the first reset
  wire [{tiles - 1}:0] playing_by_tile;
  wire [{tiles - 1}:0] cut_by_tile;
  assign playing = |playing_by_tile;
  assign cut = |cut_by_tile;
  assign cycle = cycle0;
  assign running = {{{packed["running"]}}};
  assign errors = {{{packed["errors"]}}};
  assign halted = {{{packed["halted"]}}};
  assign idle = !(|running);{window}
  initial begin
    recording = 0;
    seen_reset = 0;
    finished = 0;
    if ($value$plusargs("exchange=%s", directory) == 0) directory = ".";
{chr(10).join(opened)}
  end
  always @(posedge clk) begin
    if (rst) seen_reset <= 1;
    recording <= seen_reset && !rst && !finish && !finished;
    if (seen_reset && finish && !recording && !finished) begin
{chr(10).join(ended)}
      finished <= 1;
    end
  end
{chr(10).join(lines)}
  {hdl_system.TOP} system (
    {connections});
{seen}endmodule
"""
    return f"{untraced}{player_verilog(cfg)}\n{recorder_verilog(cfg)}\n{traced}{top}"
