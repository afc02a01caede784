"""``oncycle formal``: proofs about the hardware of the nano tile, and their broken variants."""

from fnmatch import fnmatch

from sim.bench.report import OUTPUT, write_json
from sim.build.model import BUILD_ROOT
from sim.errors import UsageError
from sim.formal.proofs import PROOFS
from sim.formal.run import decide
from sim.formal.solver import tools

__all__ = ["HELP", "add_arguments", "run"]

HELP = "prove that timing does not depend on data, and that nothing is lost on the way"


def add_arguments(parser):
    """See `sim.cli`."""
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="proofs, or patterns such as 'icu-*' (default: all)")
    parser.add_argument("--list", action="store_true", help="what there is, and what each says")


def run(options):
    """See `sim.cli`."""
    chosen = _chosen(options.names)
    if options.list:
        for proof in chosen:
            print(f"{proof.name:<24}{proof.method:<11}{proof.says}")
        return 0
    tools()
    print(f"{'proof':<24}{'method':<11}{'depth':>5}{'covers':>8}{'broken':>8}{'seconds':>9}"
          "  verdict")
    results = []
    for proof in chosen:
        result = decide(proof, BUILD_ROOT / "formal")
        results.append(result)
        found, variants = result.broken
        print(f"{result.name:<24}{result.method:<11}{result.depth:>5}{result.covers:>8}"
              f"{f'{found}/{variants}':>8}{result.seconds:>9.1f}  {result.verdict}", flush=True)
        for line in result.trouble:
            print(f"  {line}", flush=True)
    failed = sum(bool(result.trouble) for result in results)
    if not options.names:
        write_json(OUTPUT / "formal.json", {"preset": "nano", "proofs": [
            {**result._asdict(), "verdict": result.verdict} for result in results]})
    print(f"formal: {len(results) - failed} of {len(results)} proofs hold, "
          f"{sum(result.broken[0] for result in results)} of "
          f"{sum(result.broken[1] for result in results)} broken variants refuted")
    return 1 if failed else 0


def _chosen(names):
    """The proofs that ``names`` name, in order; all without a name."""
    for name in names:
        if not any(fnmatch(known, name) for known in PROOFS):
            raise UsageError(f"No proof is named {name}: oncycle formal --list shows all")
    return [proof for proof in PROOFS.values()
            if not names or any(fnmatch(proof.name, name) for name in names)]
