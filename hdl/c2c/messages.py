"""Messages of a C2C with ``cfg.sync``: what POSTs announce to the network behind each link."""

from amaranth import Cat, Const, Mux, Signal
from amaranth.lib.wiring import Out
from amaranth.utils import bits_for

from hdl.arch.isa import SendOp
from hdl.c2c.transmit import QUAD
from hdl.signatures import PostSignature, fields

__all__ = ["announce", "message_members"]


def message_members(cfg):
    """``post<k>`` and ``taken<k>`` of every link but the host's: see `hdl.c2c.C2c`."""
    members = {}
    for k in range(len(cfg.ports)):
        members |= {f"post{k}": Out(PostSignature()), f"taken{k}": Out(bits_for(QUAD))}
    return members


def announce(m, cfg, issues, posts):
    """Drive ``posts``, by link, from the issues of the send queues; returns a bit for every queue
    whose POST meets that of a lower one on some link."""
    refused = Signal(len(issues), name="posts_refused")
    found = []
    before = [Const(0, 1)] * len(posts)
    for k, issue in enumerate(issues):
        post = fields(cfg, "send", SendOp.POST, issue.word)
        asked = Signal(len(posts), name=f"posted_{k}")
        m.d.comb += [
            asked.eq(Mux(issue.valid & (post.op == SendOp.POST) & (post.vectors != 0),
                         post.links, 0)),
            refused[k].eq((asked & Cat(before)).any()),
        ]
        found.append((asked, post.vectors))
        before = [said | asked[to] for to, said in enumerate(before)]
    for to, target in enumerate(posts):
        m.d.comb += target.valid.eq(before[to])
        for asked, vectors in reversed(found):      # the lowest queue's stands
            with m.If(asked[to]):
                m.d.comb += target.vectors.eq(vectors)
    return refused
