"""The load generator's processes: each is given a part, connects, waits for the start, runs, then checks what it saw.

Four steps, each answered through a pipe: `ready` (connected, everything encoded), `done` (the clock has stopped), `quiet`
and the report. Between `done` and `quiet` every connection is asked for one more PONG, so that a message or an answer
that came twice is on record before the bytes are checked, and so that the server has read every acknowledgement.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Literal, Self

from bench.dialect import Dialect, FailedRunError, Findings, Stream
from bench.engine import FollowingLane, Lane, ReceiverLane, SenderLane, drive, drive_paced, drive_turns

STEP_TIMEOUT_S = 60.0  # connecting, running, checking, each; silence ends a run sooner
SLOWEST_PER_S = 1_000  # messages; longer runs are given longer, but a server below this is not waited for
_CREW = 2  # one process sends, one receives


@dataclass(frozen=True, slots=True)
class Part:
    """What one process does in a run."""

    role: Literal["send", "receive", "turns", "follow"]  # follow: both ends, the senders by what the recipients were given
    dialect: Dialect
    streams: tuple[Stream, ...]
    window: int = 0
    rate: int = 0  # messages a second; 0: as fast as the window allows
    keep_times: bool = False


@dataclass(slots=True)
class Report:
    start_ns: int = 0
    end_ns: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    problems: list[str] = field(default_factory=list)
    sent_digests: dict[str, str] = field(default_factory=dict)  # by sender
    received_digests: list[tuple[str, str]] = field(default_factory=list)  # (sender, digest) of each recipient
    written_ns: array[int] = field(default_factory=lambda: array("q"))
    answered_ns: array[int] = field(default_factory=lambda: array("q"))  # by message, not by arrival
    delivered_ns: array[int] = field(default_factory=lambda: array("q"))


def work(pipe: Connection) -> None:
    """The body of a worker process: one run after another until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    gc.disable()
    while True:
        try:
            part: Part = pipe.recv()
        except EOFError:
            return
        try:
            _run(part, pipe)
        except (FailedRunError, OSError, ValueError, KeyError) as error:
            pipe.send(FailedRunError(f"{part.role}: {error}" if isinstance(error, FailedRunError) else f"{part.role}: {error!r}"))
        gc.collect()


def _run(part: Part, pipe: Connection) -> None:
    lanes = _open_lanes(part)
    try:
        pipe.send("ready")
        pipe.recv()
        report = _drive(part, lanes)
        pipe.send("done")
        pipe.recv()
        for lane in lanes:
            lane.ask_for_pong()
        drive(lanes)
        pipe.send("quiet")
        pipe.recv()
        for lane in lanes:
            _check(lane, part, report)
        pipe.send(report)
        pipe.recv()  # connections stay open until the server's cost has been read: closing them is not part of the run
    finally:
        for lane in lanes:
            lane.sock.close()


def _open_lanes(part: Part) -> list[Lane]:
    lanes: list[Lane] = []
    for stream in part.streams:
        if part.role == "follow":
            sender = FollowingLane(part.dialect, stream, part.dialect.open_sender(stream.sender), part.window)
            opened = [part.dialect.open_receiver(name) for name in stream.recipients]
            lanes += [sender, *(ReceiverLane(part.dialect, stream, sock, sender) for sock in opened)]
            continue
        if part.role != "receive":
            lanes.append(SenderLane(part.dialect, stream, part.dialect.open_sender(stream.sender), part.window))
        if part.role != "send":
            lanes += [ReceiverLane(part.dialect, stream, part.dialect.open_receiver(name)) for name in stream.recipients]
    return lanes


def _drive(part: Part, lanes: Sequence[Lane]) -> Report:
    report = Report(start_ns=time.monotonic_ns())
    cpu_s = time.process_time()
    match part.role, lanes:
        case "turns", [SenderLane() as sender, ReceiverLane() as receiver]:
            report.written_ns = drive_turns(sender, receiver)
        case "send", [SenderLane() as sender] if part.rate:
            report.written_ns = drive_paced(sender, part.rate)
        case _:
            drive(lanes)
    report.cpu_s = time.process_time() - cpu_s
    report.end_ns = max(lane.end_ns for lane in lanes)
    report.wall_s = (report.end_ns - report.start_ns) / 1e9
    return report


def _check(lane: Lane, part: Part, report: Report) -> None:
    data = b"".join(lane.chunks)
    if isinstance(lane, SenderLane):
        findings = part.dialect.check_answers(data, lane.stream)
        report.sent_digests[lane.stream.sender] = findings.digest
    else:
        findings = part.dialect.check_deliveries(data, lane.stream)
        if part.role == "follow" and not report.sent_digests.get(lane.stream.sender):
            report.sent_digests[lane.stream.sender] = findings.digest  # nobody was told the ids: all recipients have the same
        report.received_digests.append((lane.stream.sender, findings.digest))
    report.problems += findings.problems
    if part.keep_times and not findings.problems:
        times = _sort_times(findings, lane)
        if isinstance(lane, SenderLane):
            report.answered_ns = times
        else:
            report.delivered_ns = times


def _sort_times(findings: Findings, lane: Lane) -> array[int]:
    times = array("q", bytes(8 * lane.stream.messages))
    for index, when_ns in zip(findings.order, lane.times_ns, strict=True):
        times[index] = when_ns
    return times


class Crew:
    """The worker processes of a whole bench run."""

    def __init__(self) -> None:
        self._members = [_hire() for _ in range(_CREW)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._dismiss()

    def run(self, parts: Sequence[Part], sample: Callable[[], None]) -> list[Report]:
        """All parts at once; raises FailedRunError. `sample` is called right before the start, once the server has read and
        answered everything, and once all is checked."""
        pipes = [pipe for _, pipe in self._members[: len(parts)]]
        for pipe, part in zip(pipes, parts, strict=True):
            pipe.send(part)
        deadline_s = STEP_TIMEOUT_S + sum(stream.messages for stream in parts[0].streams) / SLOWEST_PER_S
        try:
            self._gather(pipes, deadline_s)
            sample()
            self._say_go(pipes)
            self._gather(pipes, deadline_s)
            self._say_go(pipes)
            self._gather(pipes, deadline_s)
            sample()
            self._say_go(pipes)
            reports = self._gather(pipes, deadline_s)
            sample()
            self._say_go(pipes)
        except FailedRunError:
            # The others may be anywhere in their run: fresh processes are the sure way on.
            self._dismiss()
            self._members = [_hire() for _ in range(_CREW)]
            raise
        return [report for report in reports if isinstance(report, Report)]

    def _say_go(self, pipes: Sequence[Connection]) -> None:
        for pipe in pipes:
            pipe.send("go")

    def _gather(self, pipes: Sequence[Connection], deadline_s: float) -> list[object]:
        """One answer from each worker; the first failure is the run's."""
        stops_at = time.monotonic() + deadline_s
        answers: dict[int, object] = {}
        while len(answers) < len(pipes):
            waiting = [pipe for pipe in pipes if id(pipe) not in answers]
            ready = wait(waiting, max(stops_at - time.monotonic(), 0))
            if not ready:
                raise FailedRunError("a load generator process gave no answer in time")
            for pipe in waiting:
                if pipe in ready:
                    answers[id(pipe)] = _receive(pipe)
        return [answers[id(pipe)] for pipe in pipes]

    def _dismiss(self) -> None:
        for process, pipe in self._members:
            pipe.close()
            process.terminate()
        for process, _ in self._members:
            process.join()


def _hire() -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _receive(pipe: Connection) -> object:
    try:
        answer = pipe.recv()
    except EOFError:
        raise FailedRunError("a load generator process ended early") from None
    if isinstance(answer, FailedRunError):
        raise answer
    return answer
