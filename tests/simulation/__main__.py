"""Many worlds, or one of them again."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.cluster_world import run_cluster_seed
from tests.simulation.world import run_seed

_CLUSTERS = 50  # so many worlds of one daemon take as long as one of several hosts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--steps", type=int, default=600, help="steps in each")
    parser.add_argument("--cluster-seed", type=int, help="only this world of several hosts")
    options = parser.parse_args()
    if options.cluster_seed is not None:
        run_cluster_seed(options.cluster_seed)
        print("Every promise held.")
        return 0
    seeds = range(options.first, options.first + options.seeds) if options.seed is None else [options.seed]
    started = time.monotonic()
    for done, seed in enumerate(seeds, 1):
        run_seed(seed, options.steps)
        if done % 100 == 0:
            print(f"{done} worlds, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(seeds)} worlds of {options.steps} steps: every promise held.", flush=True)
    clusters = range(options.first, options.first + options.seeds // _CLUSTERS) if options.seed is None else range(0)
    for seed in clusters:
        run_cluster_seed(seed)
    print(f"{len(clusters)} worlds of several hosts: every promise held.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
