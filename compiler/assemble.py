"""From a plan to instruction words: waits, LOOPs, REPEATs and table entries.

Every queue of every tile gets its own words.  The words of a region fill its period exactly,
counted from the queue's first issue in it, so that iteration ``i`` is iteration 0 shifted by ``i``
periods on every queue, whatever the queue does in between.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hdl.arch import isa
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.encoding import EncodingError, encode
from hdl.arch.queues import queues

from .errors import AssemblyError
from .plan import Plan, Region

__all__ = ["assemble"]

_MAX_WAIT = (1 << isa.WAIT_BITS) - 1
_MAX_REPEAT = (1 << isa.REPEAT_COUNT_BITS) - 1
_MAX_INTERVAL = (1 << isa.REPEAT_INTERVAL_BITS) - 1


@dataclass
class _Word:
    op: str
    fields: dict
    wait: int = 0
    ends: int = 0
    issues: list = field(default_factory=list)      #: the planned issues this word stands for


class _Item(NamedTuple):
    at: int                 #: cycle of its first word
    part: object            #: a group of issues at one interval, or a `Region`
    inner: int = 0          #: of a loop: the cycle of its period at which its words begin


def assemble(plan):
    """Make the words of ``plan``.

    Returns
    -------
    (SystemBinary, Plan)
        The words and tables of every tile (no SRAM contents yet), and the same plan with the word
        of every issue filled in.

    Raises
    ------
    AssemblyError
        When a queue needs more words, table entries or LOOP levels than it has, or two issues of a
        queue meet.
    """
    cfg = plan.system.tile
    tiles = []
    words_of = {}
    issues_of = _by_queue(plan.root)
    for tile in range(plan.system.tiles):
        binary = TileBinary()
        for queue in queues(cfg):
            words, table = _QueueAssembler(cfg, plan.root, issues_of, tile, queue).run(words_of)
            if words:
                binary.words[queue.name] = words
                binary.tables[queue.name] = table
        tiles.append(binary)
    return SystemBinary(tiles=tiles), Plan(root=_with_words(plan.root, words_of),
                                           system=plan.system)


def _by_queue(root):
    """Issues of each region, tile and queue in order of time, by id of the region, tile, name."""
    found = defaultdict(list)
    for region, _, _ in root.walk():
        for issue in sorted(region.issues, key=lambda issue: issue.start):
            found[id(region), issue.tile, issue.queue].append(issue)
    return found


def _with_words(region, words_of):
    return replace(region, issues=[replace(issue, word=words_of[id(issue)])
                                   for issue in region.issues],
                   children=[_with_words(child, words_of) for child in region.children])


class _QueueAssembler:
    def __init__(self, cfg, root, issues_of, tile, queue):
        self._cfg = cfg
        self._root = root
        self._issues_of = issues_of
        self._tile = tile
        self._queue = queue
        self._table = [(0, 0, 0)]
        self._known = {}        # region id -> its items

    def run(self, words_of):
        """Words and table of the queue; notes in ``words_of`` the word of each issue by its id."""
        if not self._items(self._root):
            return [], self._table
        words = self._fill(self._root, 0, None, -1)
        words.append(_Word("HALT", {}))
        if len(words) > self._cfg.icu_words:
            raise AssemblyError(f"{self._where()} needs {len(words)} instruction words, the queue "
                                f"holds {self._cfg.icu_words}: raise TileConfig.icu_words")
        encoded = []
        for word in words:
            encoded.append(self._encode(word))
            for issue in word.issues:
                words_of[id(issue)] = encoded[-1]
        return encoded, self._table

    def _where(self):
        return f"Tile {self._tile} {self._queue.name}"

    def _encode(self, word):
        control = {"wait": word.wait, "ends": word.ends}
        try:
            return encode(self._cfg, self._queue.kind, word.op, **word.fields, **control)
        except EncodingError as error:
            raise AssemblyError(f"{self._where()}: {error}") from None

    def _items(self, region):
        """What this queue does in ``region``: a list of `_Item`, in order.

        The words of a loop fill its period from some cycle of it on: as late as its first issue,
        but no later than what follows the loop allows, and never before cycle 1, so that the LOOP
        word finds its place in cycle 0.
        """
        if id(region) in self._known:
            return self._known[id(region)]
        issues = self._issues_of.get((id(region), self._tile, self._queue.name), [])
        loops = [child for child in region.children if self._items(child)]
        parts = [(group[0].start, group) for group in
                 self._repeats(issues, sorted(child.start for child in loops))]
        parts += [(child.start, child) for child in loops]
        items, limit = [], None if region is self._root else region.period + 1
        for start, part in sorted(parts, key=lambda part: part[0], reverse=True):
            if isinstance(part, Region):
                inner = self._items(part)[0].at
                if part.count is None:          # every queue halts when the last step has ended
                    inner = min(inner, 1)
                elif limit is not None:
                    inner = min(inner, max(1, limit - start - part.count * part.period))
                items.append(_Item(start + inner - 1, part, inner))
            else:
                items.append(_Item(start, part))
            limit = items[-1].at
        items.reverse()
        self._known[id(region)] = items
        return items

    def _fill(self, region, start, end, depth):
        """Words that fill cycles ``start`` to ``end`` of ``region``; ``end`` None: as they come."""
        if depth >= self._cfg.loop_levels:
            raise AssemblyError(f"{self._where()} nests {depth + 1} LOOPs, the queue holds "
                                f"{self._cfg.loop_levels}: raise TileConfig.loop_levels")
        words, sealed, cursor = [], True, start
        for at, part, inner in self._items(region):
            loop = isinstance(part, Region)
            if cursor is None:
                raise AssemblyError(f"{self._where()} has issues behind the step loop")
            if at < cursor:
                raise AssemblyError(f"{self._where()} has no free cycle at {at} for "
                                    f"{'LOOP' if loop else part[0].op}")
            _pad(words, at - cursor, sealed)
            if loop:
                body = self._fill(part, inner, inner + part.period, depth + 1)
                body[-1].ends += 1
                words += [_Word("LOOP", {"count": part.count or 0}), *body]
                sealed = True
                cursor = None if part.count is None else at + 1 + part.count * part.period
            else:
                added, length = self._issue_words(part)
                words += added
                sealed, cursor = False, at + length
        if end is not None:
            if cursor is None or cursor > end:
                raise AssemblyError(f"{self._where()} needs more than the {end - start} cycles of "
                                    "its loop")
            _pad(words, end - cursor, sealed)
        return words

    def _issue_words(self, group):
        """Words of a group of issues at one interval, and the cycles they take."""
        issue = group[0]
        kind = isa.KINDS[self._queue.kind]
        fields = dict(issue.fields)
        if issue.op == "SYNC":
            return [_Word(issue.op, fields, issues=group)], 1
        for index, base, terms in zip(kind.indices, issue.index, issue.terms, strict=True):
            fields[index.name] = base
            if kind.terms:
                levels = [0] * self._cfg.loop_levels
                for term in terms:
                    levels[term.level] = self._entry(term)
                fields[f"{index.name}_terms"] = levels
        if issue.predicate:
            fields["predicate"] = self._entry(issue.predicate)
        words = [_Word(issue.op, fields, issues=group)]
        if len(group) == 1:
            return words, 1
        interval = group[1].start - group[0].start
        strides = {f"{index.name}_stride": stride for index, stride in
                   zip(kind.indices, self._strides(*group[:2]), strict=True)}
        words[0].wait = interval - 1
        words.append(_Word("REPEAT", {"count": len(group) - 1, "interval": interval, **strides}))
        return words, (len(group) - 1) * interval + 1

    def _strides(self, before, after):
        """What the indices of ``after`` add to those of ``before``, modulo their fields."""
        return [(b - a) % (1 << bits) for a, b, bits in
                zip(before.index, after.index, isa.index_bits(self._cfg, self._queue.kind),
                    strict=True)]

    def _repeats(self, issues, breaks):
        """Split ``issues`` (in order) into groups that one REPEAT can make; ``breaks`` are the
        cycles of loops that no group may span."""
        groups = []
        for issue in issues:
            group = groups[-1] if groups else None
            if group and self._continues(group, issue) and \
                    not any(group[0].start < at <= issue.start for at in breaks):
                group.append(issue)
            else:
                groups.append([issue])
        for group in groups:
            if len(group) == 2:
                yield from ([issue] for issue in group)
            else:
                yield group

    def _continues(self, group, issue):
        last = group[-1]
        gap = issue.start - last.start
        if not 1 <= gap <= _MAX_INTERVAL or len(group) > _MAX_REPEAT or last.op == "SYNC":
            return False
        if (last.op, last.fields, last.terms, last.predicate) != \
                (issue.op, issue.fields, issue.terms, issue.predicate):
            return False
        if len(group) == 1:
            return True
        return gap == last.start - group[-2].start and \
            self._strides(group[-2], last) == self._strides(last, issue)

    def _entry(self, term):
        """Table entry of ``term``, made when it is new."""
        entry = (term.shift, term.mask, term.step)
        if entry not in self._table:
            if len(self._table) == isa.TABLE_ENTRIES:
                raise AssemblyError(f"{self._where()} needs more than {isa.TABLE_ENTRIES} table "
                                    "entries: use fewer different loop strides")
            self._table.append(entry)
        return self._table.index(entry)


def _pad(words, gap, sealed):
    """Let ``gap`` cycles pass behind ``words``; a sealed last word may not wait longer."""
    if gap and not sealed and words[-1].wait + gap <= _MAX_WAIT:
        words[-1].wait += gap
    elif gap:
        more, wait = divmod(gap - 1, 1 << isa.WAIT_BITS)
        words.append(_Word("NOP", {"more": more}, wait=wait))
