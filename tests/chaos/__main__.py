"""`python -m tests.chaos`: prints what it did, and every breach with the command that repeats it. See CONTRIBUTING.md."""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import time
from collections import Counter

from tests.chaos.faults import FAMILIES
from tests.chaos.rules import RULES
from tests.chaos.run import Result, play

_SHOWN = 5  # breaches of one rule
_WHOLE_PASS_S = 270.0  # about what every family once takes
_SLOWEST_S = 40.0  # what one daemon's cycles may take: none is begun in the last of them


def main() -> int:
    logging.basicConfig(level=logging.ERROR)
    options = _parse()
    names = options.only.split(",") if options.only else list(FAMILIES)
    for rule in options.without.split(",") if options.without else ():
        del RULES[rule]
    breaches = 0
    for seed in range(options.seed, options.seed + options.seeds):
        print(f"seed {seed}", flush=True)
        if options.cycles:
            breaches += sum(_run_cycles(name, seed, options.part, options.cycles) for name in names)
        else:
            breaches += _run_for(names, seed, options.seconds / options.seeds)
    print(f"{breaches} breaches")
    return 1 if breaches else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--only", help=f"families of faults with commas between them: {', '.join(FAMILIES)}")
    parser.add_argument("--without", help=f"rules that do not count this time, with commas between them: {', '.join(RULES)}")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="repeats the dice of another run"
    )
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds, counting up from --seed")
    parser.add_argument("--cycles", type=int, help="so many faults of each family, however long that takes")
    parser.add_argument("--part", type=int, default=0, help="with --cycles: begin with this daemon of the seed")
    parser.add_argument("--seconds", type=float, default=240, help="without --cycles: begins nothing new after that")
    return parser.parse_args()


def _run_cycles(name: str, seed: int, part: int, cycles: int) -> int:
    breaches = 0
    while cycles > 0:
        now = min(cycles, FAMILIES[name].cycles)
        breaches += _run_part(name, seed, part, now)
        cycles -= now
        part += 1
    return breaches


def _run_for(names: list[str], seed: int, seconds: float) -> int:
    """Every family once, with fewer faults where time is short; then again in turn while there is time."""
    deadline, breaches, part = time.monotonic() + seconds - _SLOWEST_S, 0, 0
    share = min(1.0, seconds / _WHOLE_PASS_S)
    while part == 0 or time.monotonic() < deadline:
        for name in names:
            if part == 0 or time.monotonic() < deadline:
                breaches += _run_part(name, seed, part, max(1, round(FAMILIES[name].cycles * share)))
        part += 1
    return breaches


def _run_part(name: str, seed: int, part: int, cycles: int) -> int:
    family = FAMILIES[name]
    reason = family.why_not()
    if reason:
        print(f"{name}: left out: {reason}", flush=True)
        return 0
    result = asyncio.run(play(family, f"{seed}.{name}.{part}", cycles))
    print(f"{name}: {result.describe()}", flush=True)
    if result.breaches:
        _show(result)
        print(f"  again: python -m tests.chaos --only {name} --seed {seed} --part {part} --cycles {cycles}", flush=True)
    return len(result.breaches)


def _show(result: Result) -> None:
    shown: Counter[str] = Counter()
    total = Counter(breach.rule for breach in result.breaches)
    for breach in result.breaches:
        shown[breach.rule] += 1
        if shown[breach.rule] <= _SHOWN:
            print(f"  {breach}"[:400])
        if shown[breach.rule] == _SHOWN + 1:
            print(f"  {breach.rule}: … {total[breach.rule]} in all")


if __name__ == "__main__":
    sys.exit(main())
