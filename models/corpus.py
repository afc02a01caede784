"""The training text: the King James Version, from the Debian packages bible-kjv and bible-kjv-text.

A document is a chapter, its verses one a line. Every 40th chapter is held out of training.
"""

import re
import shutil
import subprocess

#: One chapter in HELD_OUT_EVERY is never trained on, from the HELD_OUT_FIRST-th on.
HELD_OUT_EVERY, HELD_OUT_FIRST = 40, 20

VERSE = re.compile(r"(\w+?)(\d+):(\d+) (.*)")


def read_chapters():
    """All chapters in order.

    Returns
    -------
    list of str
        Verses separated and ended by a line feed; ASCII.

    Raises
    ------
    SystemExit
        The `bible` command is missing, or prints something else than expected.
    """
    if shutil.which("bible") is None:
        raise SystemExit("the training text is missing: apt-get install bible-kjv bible-kjv-text")
    lines = subprocess.run(
        ["bible", "-f", "Gen1:1-Rev22:21"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    chapters, previous = [], None
    for line in lines:
        match = VERSE.fullmatch(line.strip())
        if match is None:
            raise SystemExit(f"the bible command printed a line without a reference: {line!r}")
        book, chapter, _, text = match.groups()
        if (book, chapter) != previous:
            chapters.append("")
            previous = (book, chapter)
        chapters[-1] += " ".join(text.split()) + "\n"
    if len(chapters) != 1189:
        raise SystemExit(f"expected 1189 chapters from the bible command, got {len(chapters)}")
    return chapters


def split(chapters):
    """Training chapters and held-out chapters."""
    held = [i % HELD_OUT_EVERY == HELD_OUT_FIRST for i in range(len(chapters))]
    return (
        [text for text, out in zip(chapters, held, strict=True) if not out],
        [text for text, out in zip(chapters, held, strict=True) if out],
    )


def words(text):
    """The words of a text, as they are written: letters, with apostrophes inside."""
    return re.findall(r"[A-Za-z]+(?:'[a-z]+)?", text)
