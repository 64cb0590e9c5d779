"""`python -m tests.cluster.chaos`: prints each fault, every breach, and the command that repeats a seed."""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import time
from collections import Counter
from pathlib import Path

from tests.cluster.chaos.faults import FAULTS
from tests.cluster.chaos.planted import PLANTED
from tests.cluster.chaos.run import Result, choose, play
from tests.support.networks import may_make_namespaces

_SHOWN = 5  # breaches of one rule


def main() -> int:
    logging.basicConfig(level=logging.ERROR)
    options = _parse()
    only = options.only.split(",") if options.only else []
    deadline = time.monotonic() + options.seconds
    how = "network namespaces" if may_make_namespaces() else "gates (no network namespaces here)"
    print(f"three hosts, three NATS servers, {how}", flush=True)
    breaches = faults = 0
    for seed in range(options.seed, options.seed + options.seeds):
        if time.monotonic() > deadline:
            print("no time is left for further seeds")
            break
        print(f"seed {seed}", flush=True)
        result = play(seed, choose(seed, options.faults, only), planted=options.planted or "", until=deadline, say=True)
        print(f"  {result.describe()}", flush=True)
        breaches += len(result.breaches)
        faults += len(result.faults)
        if result.breaches:
            _show(result)
            again = f" --only {options.only}" if only else ""
            print(f"  again: python -m tests.cluster.chaos --seed {seed} --seeds 1 --faults {options.faults}{again}", flush=True)
            if options.keep:
                _keep(result, Path(options.keep) / f"seed-{seed}.jsonl")
    print(f"{faults} faults, {breaches} breaches")
    return 1 if breaches else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="repeats the dice of another run"
    )
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds, counting up from --seed")
    parser.add_argument("--faults", type=int, default=20, help="so many faults for each seed")
    parser.add_argument("--seconds", type=float, default=3_600, help="begins no fault after that")
    parser.add_argument("--only", help=f"faults with commas between them: {', '.join(FAULTS)}")
    parser.add_argument("--planted", choices=sorted(PLANTED), help="every daemon has this fault: breaches are expected")
    parser.add_argument("--keep", help="a folder for the histories and logs of seeds with breaches")
    return parser.parse_args()


def _show(result: Result) -> None:
    shown: Counter[str] = Counter()
    for breach in result.breaches:
        shown[breach.rule] += 1
        if shown[breach.rule] <= _SHOWN:
            print(f"  {breach}"[:400])
    for rule, count in shown.items():
        if count > _SHOWN:
            print(f"  {rule}: {count} in all")


def _keep(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for breach in result.breaches:
            file.write(json.dumps({"breach": str(breach)}) + "\n")
        for entry in result.history.entries:
            file.write(json.dumps(entry._asdict(), default=str) + "\n")
        for host, notes in result.logs.items():
            for note in notes:
                file.write(json.dumps({"host": host} | note, default=str) + "\n")


if __name__ == "__main__":
    sys.exit(main())
