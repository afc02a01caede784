"""Everything that runs the machine: emulator, Verilator builds, conformance, command line."""

import os

# Products here are small: threads of the linear algebra library only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
