"""One simulator for all bridges: a nano tile behind a serial line, and one behind a bus."""

from hdl.bridge import AxiTile, SerialTile
from hdl.emit import emit
from sim.build import build_model
from tests.sim.bridge.programs import BUFFER, CFG, DIVISOR

TOP = "bridges"

_TEXT = f"""module {TOP} (
  input clk, input rst, input rx, output tx, output [2:0] leds,
  input [31:0] s_tdata, input s_tvalid, output s_tready, input s_tlast,
  output [31:0] m_tdata, output m_tvalid, input m_tready, output m_tlast
);
  serial_tile serial (.clk(clk), .rst(rst), .rx(rx), .tx(tx), .leds(leds));
  axi_tile axi (.clk(clk), .rst(rst),
    .s_axis__tdata(s_tdata), .s_axis__tvalid(s_tvalid), .s_axis__tready(s_tready),
    .s_axis__tlast(s_tlast), .m_axis__tdata(m_tdata), .m_axis__tvalid(m_tvalid),
    .m_axis__tready(m_tready), .m_axis__tlast(m_tlast));
endmodule
"""


def bridges_model():
    """The `sim.build.Model`, built once; the tile in it is compiled once."""
    units = {**emit(SerialTile(CFG, DIVISOR, buffer=BUFFER), "serial_tile", simulation=True),
             **emit(AxiTile(CFG, buffer=BUFFER), "axi_tile", simulation=True)}
    sources = {f"{name}.v": text for name, text in units.items()}
    return build_model("test-bridges", {**sources, f"{TOP}.sv": _TEXT}, top=TOP,
                       hier_blocks=["tile"])
