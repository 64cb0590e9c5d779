from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.places import MAX_SOCKET_PATH_BYTES, project_id, short_socket_directory, socket_path, state_directory

paths = st.text(st.characters(codec="utf-8", exclude_characters="\x00/"), min_size=1, max_size=120).map(lambda text: "/" + text)


def test_a_project_is_known_by_the_hash_of_its_root() -> None:
    assert project_id("/src/app") == hashlib.sha256(b"/src/app").hexdigest()[:12]
    assert project_id("/src/app") != project_id("/src/app2")


def test_a_root_that_is_not_utf_8_has_an_id_too() -> None:
    root = b"/src/\xff".decode("utf-8", "surrogateescape")
    assert project_id(root) == hashlib.sha256(b"/src/\xff").hexdigest()[:12]


def test_the_state_directory() -> None:
    assert state_directory("/srv/a/.agent-relay", "/src/app") == f"/srv/a/.agent-relay/projects/{project_id('/src/app')}"


def test_the_socket_stands_in_the_state_directory_as_long_as_it_fits() -> None:
    room = MAX_SOCKET_PATH_BYTES - len("/relay.sock")
    fits, too_long = "/" + "d" * (room - 1), "/" + "d" * room
    assert socket_path(fits, "/src/app", 1000) == fits + "/relay.sock"
    assert socket_path(too_long, "/src/app", 1000) == f"/tmp/agent-relay-1000/{project_id('/src/app')}/relay.sock"


def test_the_length_is_counted_in_bytes() -> None:
    assert socket_path("/" + "é" * 60, "/src/app", 7).startswith(short_socket_directory(7))


@given(paths, paths, st.integers(0, 2**32))
def test_it_always_fits(state_dir: str, root: str, uid: int) -> None:
    assert len(socket_path(state_dir, root, uid).encode()) <= MAX_SOCKET_PATH_BYTES


@given(paths, st.integers(0, 2**32))
def test_two_users_never_share_a_short_directory(root: str, uid: int) -> None:
    long = "/" + "d" * 200
    assert socket_path(long, root, uid) != socket_path(long, root, uid + 1)
