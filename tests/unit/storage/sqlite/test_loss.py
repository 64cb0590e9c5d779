from __future__ import annotations

from pathlib import Path

from agent_relay.storage.sqlite.loss import Loss, Mark, Reached, find_loss


def read(path: Path) -> Reached | None:
    mark = Mark(path)
    try:
        return mark.read()
    finally:
        mark.close()


def test_what_was_written_last_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m"
    assert read(path) is None
    mark = Mark(path)
    mark.write(1, 2, 3)
    mark.write(2**62, 20, 30)
    mark.close()
    assert read(path) == Reached(2**62, 20, 30)


def test_one_that_is_garbled_or_cut_says_nothing(tmp_path: Path) -> None:
    path, file = tmp_path / "m", tmp_path / "m-mark"
    mark = Mark(path)
    mark.write(1, 2, 3)
    mark.close()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:10] + b"\xff" + whole[11:], b"\0" * len(whole), b"X" * len(whole)):
        file.write_bytes(damaged)
        assert read(path) is None


def test_a_loss_is_less_of_anything() -> None:
    mark = Reached(number=100, stored=10, batch=5)
    assert find_loss(mark, None) is None
    assert find_loss(mark, mark) is None
    assert find_loss(Reached(101, 11, 6), mark) is None
    assert find_loss(Reached(90, 8, 4), mark) == Loss(messages=2, after=90, last=100)
    assert find_loss(Reached(100, 10, 4), mark) == Loss(messages=0, after=100, last=100)
    assert find_loss(Reached(0, 0, 0), mark) == Loss(messages=10, after=0, last=100)
