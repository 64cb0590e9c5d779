from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.recordings.asciicast import read_cast
from agent_relay.terminal.recordings.recorder import TerminalRecorder
from agent_relay.terminal.recordings.replay import replay
from tests.unit.terminal.recorded_screens import cast_of


def written(path: Path, kind: str = "o") -> list[tuple[float, str]]:
    return [(event.t, event.data) for event in read_cast(path).events if event.kind == kind]


@given(
    data=st.one_of(st.binary(max_size=80), st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))),
    cuts=st.lists(st.integers(0, 100), max_size=12),
)
def test_what_was_written_is_read_however_it_was_cut(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.cast"
    recorder = TerminalRecorder(str(path), 80, 24)
    ends = [*sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        recorder.output(data[start:end], 5.0 + number / 8)
    recorder.close()
    events = written(path)
    assert "".join(text for _, text in events) == data.decode("utf-8", "replace")
    assert [t for t, _ in events] == sorted(t for t, _ in events)


def test_the_header_says_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "x.cast"
    recorder = TerminalRecorder(str(path), 100, 30, title="codex", term="tmux-256color")
    recorder.close()
    header = json.loads(path.read_text().splitlines()[0])
    assert header.pop("timestamp") > 1_600_000_000
    assert header == {"version": 2, "width": 100, "height": 30, "title": "codex", "env": {"TERM": "tmux-256color"}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_times_begin_with_the_first_event_and_never_go_back(tmp_path: Path) -> None:
    recorder = TerminalRecorder(str(tmp_path / "x.cast"), 80, 24)
    for t, data in ((100.0, b"a"), (100.25, b"b"), (99.0, b"c")):
        recorder.output(data, t)
    recorder.close()
    assert written(tmp_path / "x.cast") == [(0.0, "a"), (0.25, "b"), (0.25, "c")]
    assert recorder.seconds == 0.25
    assert recorder.size_bytes == (tmp_path / "x.cast").stat().st_size


def test_only_a_change_of_size_is_written(tmp_path: Path) -> None:
    recorder = TerminalRecorder(str(tmp_path / "x.cast"), 80, 24)
    for size in ((80, 24), (90, 24), (90, 24), (80, 24)):
        recorder.resize(*size, 1.0)
    recorder.mark("here", 2.0)
    recorder.close()
    assert [data for _, data in written(tmp_path / "x.cast", "r")] == ["90x24", "80x24"]
    assert written(tmp_path / "x.cast", "m") == [(1.0, "here")]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.cast"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        TerminalRecorder(str(path), 80, 24)
    assert path.read_text() == "mine"


def test_a_link_is_replaced_and_never_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "x.cast"
    target.write_text("theirs")
    link.symlink_to(target)
    with pytest.raises(FileExistsError):
        TerminalRecorder(str(link), 80, 24)
    recorder = TerminalRecorder(str(link), 80, 24, is_replacing=True)
    recorder.output(b"secret", 0.0)
    recorder.close()
    assert target.read_text() == "theirs"
    assert not link.is_symlink()
    assert written(link) == [(0.0, "secret")]
    assert sorted(os.listdir(tmp_path)) == ["target", "x.cast"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        TerminalRecorder(str(tmp_path), 80, 24, is_replacing=True)


def test_a_full_disk_ends_the_recording_and_what_is_there_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = TerminalRecorder(str(tmp_path / "x.cast"), 80, 24)
    recorder.output(b"first", 0.0)
    real = os.write
    monkeypatch.setattr("os.write", lambda descriptor, data: real(descriptor, data[:7]))
    recorder.output(b"second", 1.0)
    monkeypatch.setattr("os.write", lambda descriptor, data: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    recorder.output(b"third", 2.0)
    monkeypatch.undo()
    recorder.output(b"fourth", 3.0)
    recorder.close()
    assert written(tmp_path / "x.cast") == [(0.0, "first")]
    assert recorder.failure


@pytest.mark.parametrize("case", ["claude/a", "codex/a"])
def test_a_recording_of_a_recording_replays_the_same(tmp_path: Path, case: str) -> None:
    cast = read_cast(cast_of(case))
    path = tmp_path / "again.cast"
    recorder = TerminalRecorder(str(path), cast.header.width, cast.header.height, title=cast.header.title)
    for event in cast.events:
        if event.kind == "o":
            recorder.output(event.data.encode(), event.t)
        elif event.kind == "r":
            columns, rows = map(int, event.data.split("x"))
            recorder.resize(columns, rows, event.t)
    recorder.close()
    cli = case.partition("/")[0]
    began = min(event.t for event in cast.events if event.kind in "or")

    def told(file: Path) -> list[dict[str, object]]:
        return [{name: value for name, value in line.items() if name != "t"} for line in replay(file, cli)]

    assert told(path) == told(cast_of(case))
    assert written(path)[-1][0] == pytest.approx(max(event.t for event in cast.events if event.kind == "o") - began, abs=1e-5)
