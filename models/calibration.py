"""The calibration text of a model: ``python -m models.calibration --model llama-mini``.

Quantisation takes its static scales from it. The rule: the first `CHARACTERS` characters, cut at
the last line feed, of every `EVERY`-th training chapter. None of it is held out.
"""

import argparse

from models import corpus
from models.recipes import RECIPES, add_model_option

EVERY, CHARACTERS = 48, 500


def calibration_text():
    """The text, ASCII."""
    kept, _ = corpus.split(corpus.read_chapters())
    return "\n".join(chapter[: chapter[:CHARACTERS].rfind("\n") + 1] for chapter in kept[::EVERY])


def main():
    """Command line: write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_option(parser)
    path = RECIPES[parser.parse_args().model].directory / "calibration.txt"
    path.write_text(calibration_text())
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
