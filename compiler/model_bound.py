"""What the model alone asks of a machine, whatever the program: widths, and the longest chain."""

from hdl.arch.ops import ALU_FEATURE
from hdl.arch.timing import timing

__all__ = ["model_bound"]

#: Entries of an ordered sum (docs/numerics.md).
_ENTRIES = 4


def model_bound(system, model, positions):
    """Cycles a token that no program of this machine can do without.

    The largest of: every byte of weights, keys and values read once over the width of all slices;
    the block loads of the MXMs; the bytes that every tile must get from others over its links; the
    longest chain of operations of ``docs/numerics.md``, each with its functional delay, without a
    hop, an SRAM access or a link between them.

    Parameters
    ----------
    system : SystemConfig
    model : QuantisedModel
    positions : int
        Context of the program.

    Returns
    -------
    (int, str)
        The bound and what binds.
    """
    cfg, tiles, lanes = system.tile, system.tiles, system.tile.lanes
    size = model.head.size + sum(_layer_bytes(layer, positions) for layer in model.layers)
    found = {"SRAM width": -(-size // (len(cfg.slices("mem")) * lanes * tiles)),
             "MXM weight loads": -(-size // (4 * lanes * len(cfg.slices("mxm")) * tiles)),
             "path": _path(cfg, model, positions)}
    if tiles > 1:
        exchanged = sum(2 * (layer.heads * layer.head_size + model.ffn) + 2 * 4 * model.hidden
                        for layer in model.layers)
        incoming = sum(cfg.port(link.target_port).bytes for link in system.links
                       if link.target == 0)
        found["link width"] = -(-exchanged * (tiles - 1) // (tiles * incoming))
    what = max(found, key=found.get)
    return found[what], what


def _layer_bytes(layer, positions):
    """Bytes of the weights, keys and values of a layer, without what fills up vectors."""
    hidden, ffn = layer.gate.shape
    heads = 2 * layer.heads + (1 if layer.v is None else 2) * layer.kv_heads
    cache = 2 * layer.kv_heads * _slots(layer, positions)
    return (heads * hidden + cache) * layer.head_size + 3 * hidden * ffn


def _slots(layer, positions):
    return positions if layer.window is None else min(layer.window, positions)


def _path(cfg, model, positions):
    """Cycles from a token's number to the next one's along the longest chain of operations."""
    table = timing(cfg)
    product = table["mxm_act", "ABC"].t_d + table["mxm_act", "ACC"].t_d

    def run(ops):
        """Cycles of operations one after the other."""
        return sum(product if op == "PRODUCT" else table["reduce", op].t_d
                   if ("reduce", op) in table and op == "SUM" else _alu(cfg, op)
                   for op in ops.split())

    def ordered(elements):
        """Cycles from the last chunk to the sum, when all chunks come at once."""
        chunks = -(-elements // cfg.lanes)
        serial = -(-chunks // _ENTRIES) - 1
        folds = (min(chunks, _ENTRIES) - 1).bit_length()
        return run("ADD " * (serial + folds) + "SUM")

    hidden = ordered(model.hidden)
    norm = run("MUL") + hidden + run("RSQRT")
    early = norm + run("MUL TO_LIMBS PRODUCT")
    gate = "MUL MUL ADD MUL EXP2" if model.activation == "gelu_tanh" else "MUL EXP2"
    total = run("FROM_INT8 MUL") + early + run("MUL")      # embedding; head up to its scores
    for layer in model.layers:
        first = run("MUL TO_LIMBS PRODUCT")
        added = run("MUL ADD") if layer.o_scale is None else \
            run("MUL MUL") + hidden + run("RSQRT MUL ADD")
        query = run("MUL MUL ADD")
        if layer.qk_norm:
            query = max(query, run("MUL MUL") + ordered(layer.head_dim) + run("RSQRT"))
        if model.late_norms:
            total += first + query if layer.qk_norm else max(first + query, norm)
        else:
            total += early + query
        total += run("MUL " * (layer.qk_norm or model.late_norms) + "TO_LIMBS PRODUCT")
        total += run("MUL MIN EXP2") + ordered(_slots(layer, positions))
        total += run("RECIP MUL MUL TO_LIMBS PRODUCT MUL TO_LIMBS PRODUCT") + added
        total += max(first + run("MUL"), norm) if model.late_norms else early
        total += run(f"{gate} ADD RECIP MUL TO_LIMBS PRODUCT") + added
    return total


def _alu(cfg, op):
    """Depth of the shallowest ALU that has ``op``."""
    return min(alu.depth for alu in cfg.alus if ALU_FEATURE[op] in alu.features)
