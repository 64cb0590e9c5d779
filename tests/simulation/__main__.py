"""Many worlds, or one of them again."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.world import run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--steps", type=int, default=600, help="steps in each")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds) if options.seed is None else [options.seed]
    started = time.monotonic()
    for done, seed in enumerate(seeds, 1):
        run_seed(seed, options.steps)
        if done % 100 == 0:
            print(f"{done} worlds, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(seeds)} worlds of {options.steps} steps: every promise held.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
