"""`python -m bench`: runs the scenarios, prints the tables, and says with its exit status whether every run was good."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

from bench.process import describe_machine, file_system_of, raise_file_limit
from bench.report import format_report
from bench.scenarios import QUICK, SCENARIOS, Bench, Row, Sizes
from bench.servers import find_nats, find_redis, find_relay
from bench.targets import TARGETS, Results
from bench.worker import Crew

README = Path(__file__).with_name("README.md")
_BEGIN, _END = "<!-- results -->", "<!-- end of results -->"
EXIT_FAILED_RUN, EXIT_INTERRUPTED = 1, 130


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)  # either way, servers and workers are stopped on the way out
    raise_file_limit()
    machine = f"{describe_machine(tempfile.gettempdir())}, Python {sys.version.split()[0]}"
    print(machine)
    if file_system_of(tempfile.gettempdir()) == "tmpfs":
        print("The temporary directory is in memory: fsync costs nothing there. Set TMPDIR to a directory on a disk.")
    began = time.monotonic()
    try:
        rows = _measure(options)
    except KeyboardInterrupt:
        print("Interrupted: all servers are stopped, nothing is reported.", file=sys.stderr)
        return EXIT_INTERRUPTED
    report = format_report(rows)
    print(f"\n{report}\n\n{time.monotonic() - began:.0f} s in all.")
    if options.json:
        _write_json(options.json, machine, rows)
    failed = any(row.failure for row in rows)
    if options.write_readme and not failed:
        _write_readme(options, machine, report)
    return EXIT_FAILED_RUN if failed else 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures the daemon next to its peers.")
    parser.add_argument("--quick", action="store_true", help="small runs, once each: shows that everything works, not how fast")
    parser.add_argument("--only", action="append", choices=SCENARIOS, metavar="SCENARIO", help=f"one of {', '.join(SCENARIOS)}")
    parser.add_argument("--messages", type=_positive, help="messages of the pipelined run; the other runs follow in proportion")
    parser.add_argument("--repeats", type=_positive, help="rounds of each scenario, however long they take")
    parser.add_argument("--no-nats", action="store_true", help="leave JetStream out")
    parser.add_argument("--no-redis", action="store_true", help="leave Redis Streams out")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to a file as well")
    parser.add_argument("--write-readme", action="store_true", help="put the results into bench/README.md")
    parser.add_argument("--relay", metavar="COMMAND", help="the daemon's command; by default agent-relay beside this Python")
    options = parser.parse_args(arguments)
    if not options.no_nats and find_nats() is None:
        parser.error("nats-server is not installed: pip install 'agent-relay[bench]', or leave it out with --no-nats")
    if not options.no_redis and find_redis() is None:
        parser.error("redis-server is not installed: apt-get install redis-server, or leave it out with --no-redis")
    return options


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _measure(options: argparse.Namespace) -> list[Row]:
    sizes = QUICK if options.quick else Sizes()
    if options.repeats:
        sizes = replace(sizes, repeats=options.repeats, budget_s=float("inf"))
    sizes = replace(sizes, messages=options.messages or sizes.messages)
    command = shlex.split(options.relay) if options.relay else find_relay()
    with Crew() as crew:
        bench = Bench(
            crew, command, None if options.no_nats else find_nats(), None if options.no_redis else find_redis(), sizes, _tell
        )
        for name in options.only or SCENARIOS:
            SCENARIOS[name](bench)
    _tell("")
    return bench.rows


def _tell(text: str) -> None:
    """What runs now, on one line that is overwritten; nothing where nobody watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _write_json(path: str, machine: str, rows: list[Row]) -> None:
    results = Results(rows)
    targets = [
        {"text": target.text, "unit": target.unit, "floor": target.floor, "goal": target.goal, "value": value,
         "verdict": target.judge(value)}
        for target in TARGETS if (value := target.read(results)) is not None
    ]  # fmt: skip
    content = {"machine": machine, "rows": [asdict(row) for row in rows], "targets": targets}
    Path(path).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _write_readme(options: argparse.Namespace, machine: str, report: str) -> None:
    before, begin, rest = README.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{README.name} has no place for results: {_BEGIN} … {_END} is missing.")
    command = " ".join(["python -m bench", *_spell_sizes(options)])
    README.write_text(f"{before}{begin}\n`{command}` on {machine}:\n\n```text\n{report}\n```\n{end}{after}")


def _spell_sizes(options: argparse.Namespace) -> list[str]:
    """The options that make the numbers what they are; where files are kept is nobody's business."""
    words = ["--quick"] if options.quick else []
    words += [f"--only {name}" for name in options.only or ()]
    words += [f"--{name} {getattr(options, name)}" for name in ("messages", "repeats") if getattr(options, name)]
    return words + [f"--no-{peer}" for peer in ("nats", "redis") if getattr(options, f"no_{peer}")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
