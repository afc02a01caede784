"""Tokens on the tiles: the step's token, its embedding, scores of the next, and the best of them.

Token numbers are fp32 in every lane: exact up to 2**24.
"""

import numpy as np

from ..errors import CompileError
from ..lower.chain import At, Chain, Entry
from ..lower.product import Product, place_matrix
from .exchange import exchange
from .partition import blocks_of
from .reductions import Extreme
from .shared import of_sequence
from .vectors import normed_limbs, scaled, sum_of_squares

__all__ = ["FORCED_NONE", "TokenPlaces"]

#: In the table of forced tokens: take the one that the tiles chose.
FORCED_NONE = -1.0
#: Token ``n`` is `_LAST` - n where the lowest of several is looked for: 0 is no token, the largest
#: is the lowest token.
_LAST = float(1 << 22)


class TokenPlaces:
    """Embedding, head and token words of every tile.

    Parameters
    ----------
    machine : Machine
    record, context : Record
        Of one layer, for what does not depend on the context and for what does; the caller closes
        both.
    model : QuantisedModel
    positions : int
        Steps that can be run: length of the table of forced tokens.
    shared : SharedPlaces

    Raises
    ------
    CompileError
        When token numbers are not exact, or the floorplan cannot turn an address around.
    """

    def __init__(self, machine, record, context, model, positions, shared):
        self._machine = machine
        self._cfg = machine.cfg
        self._model = model
        self._sequences = shared.sequences
        self._consecutive = shared.sequences[-1].position.bits > 0
        if model.vocab > _LAST:
            raise CompileError(f"Vocabulary must be at most {int(_LAST)} tokens, not {model.vocab}")
        tiles, vectors = machine.system.tiles, -(-model.vocab // self._cfg.lanes)
        if vectors < tiles:
            raise CompileError(f"Vocabulary of {model.vocab} tokens fills {vectors} vectors, too "
                               f"few for {tiles} tiles: use at most {vectors}")
        self._sxm, self._gathered, self._far = self._turning_point()
        self._mask = (1 << (positions - 1).bit_length()) - 1
        tiles = range(machine.system.tiles)
        self._tiles = [self._place(record, tile) for tile in tiles]
        self._words = []
        for sequence in range(len(shared.sequences)):
            self._words.append([self._place_sequence(record, context, tile, positions, sequence)
                                for tile in tiles])

    def _turning_point(self):
        """An SXM, the four slices between it and the VXM, and four others on one side of it, from
        which the address comes.

        An address that comes from the SXM and the words that it finds run the same way to the VXM,
        so the four byte planes of a table meet there in one cycle.
        """
        cfg, vxm = self._cfg, self._cfg.position("vxm")
        for sxm in cfg.slices("sxm"):
            here = cfg.position(sxm)
            low, high = sorted((here, vxm))
            whole = [quad for quad in self._machine.quads
                     if len({cfg.position(name) < here for name in quad}) == 1]
            for quad in whole if len(whole) > 1 else ():
                if all(low < cfg.position(name) < high for name in quad):
                    return sxm, quad, next(far for far in reversed(whole) if far != quad)
        raise CompileError("Decoder needs four mem slices between an sxm slice and the vxm slice, "
                           "and four others on one side of that sxm slice: change "
                           "TileConfig.floorplan")

    def _place(self, record, tile):
        model, machine, cfg = self._model, self._machine, self._cfg
        lanes, tiles = cfg.lanes, machine.system.tiles
        chunks = -(-model.hidden // lanes)
        rows = np.zeros((model.vocab, chunks * lanes), np.int8)
        rows[:, :model.hidden] = model.embedding
        per_slice = -(-chunks // 4)
        table = np.zeros((4, per_slice, model.vocab, lanes), np.uint8)
        for c in range(chunks):
            table[c % 4, c // 4] = rows[:, c * lanes:(c + 1) * lanes].view(np.uint8)
        mine = blocks_of(tile, tiles, model.vocab, lanes)
        # Behind the last token come copies of it: equal scores, and of equals the lowest is taken.
        columns = np.minimum(np.arange(mine.start * lanes, mine.stop * lanes), model.vocab - 1)
        spread = np.repeat(np.asarray(model.embedding_scale, np.float32)[:, None], lanes, 1)
        numbers = _LAST - np.arange(mine.start * lanes, mine.stop * lanes, dtype=np.float32)
        there, here = machine.there, machine.here
        return {
            "rows": record.add("embedding", tile, self._gathered, per_slice * model.vocab,
                               table.reshape(4, 1, -1, lanes)),
            "scales": record.vector("embedding scales", tile, self._gathered, spread[None]),
            "head": place_matrix(record, "head", tile, np.ascontiguousarray(
                model.head[columns].T)[None]),
            "head_gain": record.vector("head gain", tile, there, model.head_gain[None]),
            "head_eps": record.vector("head eps", tile, here,
                                      np.full((1, lanes), model.head_eps, np.float32)),
            "logit_gain": record.vector("logit gain", tile, there, model.logit_gain[columns]),
            "numbers": record.vector("token numbers", tile, there, numbers[None]),
        }

    def _place_sequence(self, record, context, tile, positions, sequence):
        """Words of one sequence."""
        machine, lanes = self._machine, self._cfg.lanes
        here, there, tiles = machine.here, machine.there, machine.system.tiles
        mine = len(blocks_of(tile, tiles, self._model.vocab, lanes))

        def name(what):
            return of_sequence(what, sequence)

        if self._consecutive and sequence:
            forced = self._words[0][tile]["forced"]
        else:
            forced = context.vector(name("forced tokens"), tile, there, np.full(
                (1, positions * lanes), FORCED_NONE, np.float32))
        return {
            "forced": forced,
            "next": record.vector(name("next token"), tile, there, np.zeros((1, lanes))),
            "address": record.add(name("token"), tile, self._far, 1),
            "scores": record.add(name("scores"), tile, here, mine),
            # without a softcap they are the scores, written in the same cycle
            "logits": record.add(name("logits"), tile,
                                 there if self._model.softcap is None else here, mine),
            "best": [record.add(name(f"best {other}"), tile, there, 2) for other in range(tiles)],
        }

    def emit_token(self, builder):
        """The step's token: the forced one, or the one that the tiles chose in the step before.
        Those of consecutive positions are all forced."""
        for shared in self._sequences:
            for tile in range(self._machine.system.tiles):
                mine = self._words[shared.number][tile]
                word, terms = shared.position.field(0, self._mask, 1)
                forced = mine["forced"].at(word)
                forced = At(forced.slices, forced.address, (*forced.terms, *terms), forced.key)
                builder.operation = "embedding"
                chain = Chain(self._cfg, f"tile {tile} token", tile)
                token = chain.read(forced)
                if not self._consecutive:
                    free = chain.alu("CMP_LT", token, 0.0)
                    chosen = chain.alu("MUL", free, chain.read(mine["next"].at()))
                    token = chain.alu("MAX", chosen, chain.read(forced))
                chain.write(chain.alu("TO_INT32", token), mine["address"].at())
                builder.add(chain.cluster())
                self._emit_embedding(builder, tile, shared)

    def _address(self, chain, tile, sequence):
        """The token as an address that runs from the turning SXM towards the VXM."""
        at = self._words[sequence][tile]["address"].at()
        return chain.move("SHIFT", chain.read(at), self._sxm, 0)

    def _emit_embedding(self, builder, tile, shared):
        mine, vocab = self._tiles[tile], self._model.vocab
        chain = Chain(self._cfg, f"tile {tile} embedding scale", tile)
        alu, entry = self._machine.factor(tile)
        scale = chain.gather(mine["scales"].at(), self._address(chain, tile, shared.number))
        chain.alu("PASS", scale, on=alu, keep=entry)
        builder.add(chain.cluster())
        for c, target in enumerate(shared.x(tile)):
            chain = Chain(self._cfg, f"tile {tile} embedding {c}", tile)
            at = mine["rows"].at(c // 4 * vocab, (c % 4,))
            row = chain.gather(at, self._address(chain, tile, shared.number))
            value = chain.alu("FROM_INT8", row)
            chain.write(chain.alu("MUL", value, Entry(entry), on=alu), target)
            builder.add(chain.cluster())

    def emit_head(self, builder):
        """Scores and logits of the next token, and the token with the largest score."""
        tiles = range(self._machine.system.tiles)
        for tile in tiles:
            self._emit_scores(builder, tile)
        for words in self._words:
            for tile in tiles:
                builder.operation = "exchange best"
                exchange(builder, self._machine, "best", tile,
                         [[words[other]["best"][tile].at(i) for i in range(2)]
                          for other in tiles])
            for tile in tiles:
                if len(tiles) > 1:
                    self._emit_choice(builder, tile, words[tile])

    def _emit_scores(self, builder, tile):
        """Scores of one tile, and the best of them."""
        mine, machine, vectors = self._tiles[tile], self._machine, []
        gain = [mine["head_gain"].at(c) for c in range(mine["head_gain"].words)]
        builder.operation = "head norm"
        for shared in self._sequences:
            name, vector = f"tile {tile} head norm", shared.limbs(tile, "normed")
            squares = sum_of_squares(builder, machine, name, tile, shared.x(tile),
                                     mine["head_eps"].at())
            normed_limbs(builder, machine, name, tile, shared.x(tile), gain, squares, vector)
            vectors.append(vector)
        builder.operation = "head"
        work = Product(builder, f"tile {tile} head", mine["head"], vectors)
        alone = len(vectors) == 1
        largest = self._largest(builder, tile) if alone else None
        for c in range(mine["head"].n_blocks):
            for words, total in zip(self._words, work.column(c), strict=True):
                self._emit_score(builder, tile, words[tile], c, total, largest)
        for words in self._words:
            if not alone:       # entries are too few for all sequences at once
                builder.operation = "argmax"
                largest = self._largest(builder, tile)
                for c in range(mine["head"].n_blocks):
                    chain = Chain(self._cfg, f"tile {tile} largest {c}", tile)
                    largest.add(chain, chain.read(words[tile]["scores"].at(c)))
                    builder.add(chain.cluster())
            self._emit_best(builder, tile, words[tile], largest)

    def _largest(self, builder, tile):
        return Extreme(builder, self._machine, "MAX", f"tile {tile} largest score", tile)

    def _emit_score(self, builder, tile, words, c, total, largest):
        """Scores and logits of one vector; ``largest`` takes it, if there is one."""
        chain = Chain(self._cfg, f"tile {tile} score {c}", tile)
        score = scaled(chain, total, self._tiles[tile]["logit_gain"].at(c))
        chain.write(score, words["scores"].at(c))
        if largest:
            largest.add(chain, score)
        if self._model.softcap is None:
            chain.write(score, words["logits"].at(c))
        builder.add(chain.cluster())
        if self._model.softcap is not None:
            self._emit_logits(builder, tile, words, c)

    def _emit_best(self, builder, tile, words, largest):
        """The largest score of a tile, and the lowest token that has it."""
        machine = self._machine
        builder.operation = "argmax"
        lowest = Extreme(builder, machine, "MAX", f"tile {tile} lowest place", tile)
        chain, best = largest.total()
        alu, entry, kept = largest.alu, 0, lowest.alu != largest.alu
        if kept:            # where an ALU is free for it; otherwise its entries are in use
            best = chain.alu("PASS", best, on=alu, keep=entry)
        chain.write(best, words["best"][tile].at(0))
        builder.add(chain.cluster())
        for c in range(words["scores"].words):
            chain = Chain(self._cfg, f"tile {tile} place {c}", tile)
            score = chain.read(words["scores"].at(c))
            same = chain.alu("CMP_EQ", score, Entry(entry), on=alu) if kept else \
                chain.alu("CMP_EQ", score, chain.read(words["best"][tile].at(0)))
            number = chain.read(self._tiles[tile]["numbers"].at(c))
            lowest.add(chain, chain.alu("MUL", same, number))
            builder.add(chain.cluster())
        chain, number = lowest.total()
        if machine.system.tiles == 1:
            self._finish(chain, tile, words, number)
        else:
            chain.write(number, words["best"][tile].at(1))
        builder.add(chain.cluster())

    def _finish(self, chain, tile, words, number):
        """Keep the chosen token, and send it to the host."""
        token = chain.alu("SUB", _LAST, number)
        chain.write(token, words["next"].at())
        if tile == 0:
            chain.send(token, [len(self._cfg.ports)])

    def _emit_logits(self, builder, tile, words, c):
        """``softcap * tanh`` of the score, as the plain model computes it."""
        chain = Chain(self._cfg, f"tile {tile} logit {c}", tile)
        value = chain.alu("EXP2", chain.read(words["scores"].at(c)))
        value = chain.alu("RECIP", chain.alu("ADD", value, 1.0))
        cap = float(self._model.softcap)
        value = chain.alu("ADD", chain.alu("MUL", value, -2 * cap), cap)
        chain.write(value, words["logits"].at(c))
        builder.add(chain.cluster())

    def _emit_choice(self, builder, tile, words):
        """The next token from the best of all tiles."""
        builder.operation = "choice"
        alu = self._machine.turn(tile, "sums")
        for other, place in enumerate(words["best"]):
            chain = Chain(self._cfg, f"tile {tile} best of {other}", tile)
            if other:
                chain.alu("MAX", chain.read(place.at(0)), Entry(0), on=alu, keep=0)
            else:
                chain.alu("PASS", chain.read(place.at(0)), on=alu, keep=0)
            builder.add(chain.cluster())
        for other, place in enumerate(words["best"]):
            chain = Chain(self._cfg, f"tile {tile} number of {other}", tile)
            same = chain.alu("CMP_EQ", chain.read(place.at(0)), Entry(0), on=alu)
            number = chain.alu("MUL", same, chain.read(place.at(1)))
            if other:
                chain.alu("MAX", number, Entry(1), on=alu, keep=1)
            else:
                chain.alu("PASS", number, on=alu, keep=1)
            builder.add(chain.cluster())
        chain = Chain(self._cfg, f"tile {tile} next token", tile)
        self._finish(chain, tile, words, chain.alu("PASS", Entry(1), on=alu))
        builder.add(chain.cluster())
