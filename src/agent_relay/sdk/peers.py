"""The peer that a client talks to: asked of the folder the socket lies in and of the kernel, before a word is said.

A path proves nothing. Where others can write, anybody may listen at the place where our daemon is looked for, and would be
told names, tokens and messages.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Mapping

from agent_relay.protocol import places
from agent_relay.sdk.errors import StrangerAtSocket

_PEERCRED = struct.Struct("3i")  # pid, uid, gid
_LOCAL_PEERCRED, _XUCRED_BYTES = 0x001, 76  # macOS and BSD: struct xucred { u_int version; uid_t uid; … }
_ROOT = 0


def check_folder(path: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raises StrangerAtSocket where somebody else could have put the socket there, and OSError where there is no such folder."""
    folder = os.path.dirname(os.path.abspath(path))
    short = places.short_socket_directory(os.getuid())
    if folder == short or folder.startswith(short + "/"):
        _check_private(short)
        _check_private(folder)
        return
    found = os.stat(folder)
    if found.st_uid not in trusted_uids(environ):
        raise StrangerAtSocket(f"The folder {folder} belongs to another user (uid {found.st_uid}). {_advice(found.st_uid)}")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise StrangerAtSocket(
            f"Anyone can replace files in {folder}, including the daemon's socket. Fix it with: chmod o-w {folder}"
        )


def _check_private(folder: str) -> None:
    """The short place lies where everybody can make one."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise StrangerAtSocket(
            f"{folder} is not a directory that you own (uid {found.st_uid} made it). "
            f"Remove it, or choose a --state-dir with a shorter path."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise StrangerAtSocket(f"{folder} is open to other users. Fix it with: chmod 700 {folder}")


def check_peer(connection: socket.socket, path: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raises StrangerAtSocket unless whoever listens there is this user or root, or one that this user has named."""
    uid = peer_uid(connection)
    if uid not in trusted_uids(environ):
        raise StrangerAtSocket(f"The program that listens at {path} belongs to another user (uid {uid}). {_advice(uid)}")


def trusted_uids(environ: Mapping[str, str]) -> set[int]:
    named = environ.get(places.ENV_PEER_UIDS, "").replace(",", " ").split()
    return {os.geteuid(), _ROOT, *(int(word) for word in named if word.isdecimal())}


def peer_uid(connection: socket.socket) -> int:
    """The user of the process at the other end, as the kernel knows it."""
    if hasattr(socket, "SO_PEERCRED"):
        return int(_PEERCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size))[1])
    return int(struct.unpack_from("2I", connection.getsockopt(0, _LOCAL_PEERCRED, _XUCRED_BYTES))[1])


def _advice(uid: int) -> str:
    return (
        f"Nothing was sent to it. Choose another --socket or --state-dir; or, if you mean to use that user's daemon, "
        f"set {places.ENV_PEER_UIDS}={uid}."
    )
