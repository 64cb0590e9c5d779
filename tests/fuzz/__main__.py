"""`python -m tests.fuzz TARGET --seconds 600`: looks for input that breaks a target, led by the code it reaches. Needs
`pip install atheris`.

What reaches new code is kept in the corpus, and replaced by what is shorter and reaches the same. An input that breaks the target
is left in the current folder as `crash-…`: mend what it shows, and put it into the corpus as well.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzzes what reads what others wrote.")
    parser.add_argument("target", choices=sorted(path.name for path in CORPUS.iterdir()))
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    import atheris

    with atheris.instrument_imports(include=["agent_relay"]):
        from tests.fuzz.targets import TARGETS

    limits = [f"-max_total_time={options.seconds}", "-max_len=512", "-timeout=10"]
    atheris.Setup([sys.argv[0], *limits, str(CORPUS / options.target)], TARGETS[options.target])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
