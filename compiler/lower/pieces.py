"""Clusters that every lowering is made of: a word moved, weights loaded, a vector multiplied."""

from ..schedule.problem import Bundle, Cluster, Slot

__all__ = ["acc_to_words", "load_weights", "move", "multiply", "receive_word", "send_word"]


def _read(tile, slice_, address, terms=()):
    return Slot(tile, f"{slice_}.read", "READ", index=(address,), terms=(tuple(terms),))


def _write(tile, slice_, address, terms=(), predicate=None):
    return Slot(tile, f"{slice_}.write", "WRITE", index=(address,), terms=(tuple(terms),),
                predicate=predicate)


def _join(cfg, name, sources, target, planes=1):
    """Cluster of single-stream ``sources`` read as aligned planes by ``target``."""
    bundle = Bundle(len(sources), [(source, plane) for plane, source in enumerate(sources)],
                    [(target, "source", 0, planes)])
    return Cluster(cfg, name, [*sources, target], [bundle])


def move(cfg, name, tile, source, target, *, source_terms=(), target_terms=(), predicate=None):
    """One word from ``source`` to ``target``, both (slice, address)."""
    return _join(cfg, name, [_read(tile, *source, source_terms)],
                 _write(tile, *target, target_terms, predicate))


def load_weights(cfg, name, tile, mxm, words, row, columns=False):
    """1, 2 or 4 ``words``, (slice, address) each, into rows ``row ...`` of an MXM's shadow."""
    count_log2 = len(words).bit_length() - 1
    load = Slot(tile, f"{mxm}.weight", "LW", index=(row,),
                fields={"columns": int(columns), "count_log2": count_log2})
    return _join(cfg, name, [_read(tile, *word) for word in words], load, len(words))


def multiply(cfg, name, tile, mxm, word, accumulator, *, install=False, high=False, clear=False):
    """The vector of ``word``, (slice, address), times the active weights into an accumulator."""
    act = Slot(tile, f"{mxm}.act", "ABC", index=(accumulator, 0),
               fields={"install": int(install), "high": int(high), "clear": int(clear)})
    return _join(cfg, name, [_read(tile, *word)], act)


def acc_to_words(cfg, name, tile, mxm, accumulator, slices, address):
    """An accumulator as fp32, one byte plane into ``address`` of each of four ``slices``."""
    acc = Slot(tile, f"{mxm}.act", "ACC", index=(accumulator, 0))
    writes = [_write(tile, slice_, address) for slice_ in slices]
    bundle = Bundle(4, [(acc, 0)], [(write, "source", plane, 1)
                                    for plane, write in enumerate(writes)])
    return Cluster(cfg, name, [acc, *writes], [bundle])


def send_word(cfg, name, tile, word, links):
    """The vector of ``word``, (slice, address), onto every link of ``links``."""
    mask = sum(1 << link for link in links)
    send = Slot(tile, f"link{min(links)}.send", "SEND", fields={"links": mask})
    return _join(cfg, name, [_read(tile, *word)], send)


def receive_word(cfg, name, tile, link, word):
    """The next vector of ``link`` into ``word``, (slice, address)."""
    recv = Slot(tile, f"link{link}.recv", "RECV")
    return _join(cfg, name, [recv], _write(tile, *word))
