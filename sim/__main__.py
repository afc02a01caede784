"""``python -m sim``: the ``oncycle`` command."""

import sys

from sim.cli import main

sys.exit(main())
