"""Accounts for NATS, one per project, and a credentials file for each of its hosts: one project cannot read another.

    python make_accounts.py FOLDER shop:laptop,server,ci blog:server

FOLDER then holds:

    accounts.conf             for the NATS servers, in place of authorization.conf; has public keys and signatures only
    creds/shop-laptop.creds   for that host, as --cluster-creds; a secret
    keys/                     the private keys of the operator and the accounts; secret, and not needed by any server

Run it again with another list to change it: hosts that are still listed keep their file, new ones get one, and those that are
gone are revoked. Put the new accounts.conf on every server and reload it (`nats-server --signal reload`).

It needs the package nkeys, which agent-relay[cluster] brings. `nsc` of NATS makes the same, with more possibilities.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import nkeys

_UNLIMITED = -1
_PROJECT = re.compile(r"[a-z0-9-]{1,32}")


class Key:
    """A key pair whose seed is in a file that only its owner can read; made if it is not there."""

    def __init__(self, path: Path, kind: int) -> None:
        if not path.exists():
            write_private(path, nkeys.encode_seed(os.urandom(32), kind).decode() + "\n")
        self.seed = path.read_text("ascii").strip()
        self._pair = nkeys.from_seed(self.seed.encode())

    @property
    def public(self) -> str:
        return bytes(self._pair.public_key).decode()

    def sign(self, subject: str, name: str, content: dict[str, Any]) -> str:
        """A token in NATS's form of JWT."""
        claims = {"iat": int(time.time()), "iss": self.public, "name": name, "sub": subject, "nats": content | {"version": 2}}
        claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
        parts = [_encode(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, claims)]
        return ".".join([*parts, _encode(self._pair.sign(".".join(parts).encode()))])


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def write_private(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(text)


def make_account(operator: Key, account: Key, name: str, revoked: dict[str, int], *, has_streams: bool) -> str:
    limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), _UNLIMITED) | {"wildcards": True}
    if has_streams:
        limits |= dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), _UNLIMITED)
    return operator.sign(account.public, name, {"type": "account", "limits": limits, "revocations": revoked})


def make_creds(account: Key, user: Key, name: str) -> str:
    limits = dict.fromkeys(("subs", "data", "payload"), _UNLIMITED)
    token = account.sign(user.public, name, {"type": "user", "pub": {}, "sub": {}, **limits})
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )


def make_accounts(folder: Path, projects: dict[str, list[str]]) -> None:
    keys = folder / "keys"
    operator = Key(keys / "operator.nk", nkeys.PREFIX_BYTE_OPERATOR)
    system = Key(keys / "system.nk", nkeys.PREFIX_BYTE_ACCOUNT)
    accounts = {system.public: make_account(operator, system, "SYS", {}, has_streams=False)}
    for project, hosts in projects.items():
        account = Key(keys / f"{project}.nk", nkeys.PREFIX_BYTE_ACCOUNT)
        for host in hosts:
            creds = folder / "creds" / f"{project}-{host}.creds"
            if not creds.exists():
                user = Key(keys / project / f"{host}.nk", nkeys.PREFIX_BYTE_USER)
                write_private(creds, make_creds(account, user, host))
        accounts[account.public] = make_account(operator, account, project, revoke(folder, project, hosts), has_streams=True)
    preload = "".join(f"  {public}: {token}\n" for public, token in accounts.items())
    own = operator.sign(operator.public, "relay", {"type": "operator"})
    (folder / "accounts.conf").write_text(
        f"operator: {own}\nsystem_account: {system.public}\nresolver: MEMORY\nresolver_preload {{\n{preload}}}\n"
    )


def revoke(folder: Path, project: str, hosts: list[str]) -> dict[str, int]:
    """Users of hosts that are no longer listed, each with the moment up to which its tokens are void."""
    revoked: dict[str, int] = {}
    for path in sorted((folder / "keys" / project).glob("*.nk")):
        if path.stem not in hosts:
            revoked[Key(path, nkeys.PREFIX_BYTE_USER).public] = int(time.time())
            (folder / "creds" / f"{project}-{path.stem}.creds").unlink(missing_ok=True)
    return revoked


def main(arguments: list[str]) -> int:
    projects = {}
    for word in arguments[1:]:
        project, colon, hosts = word.partition(":")
        names = hosts.split(",")
        if not colon or not all(_PROJECT.fullmatch(name) for name in (project, *names)):
            sys.stderr.write(f"{word}: not of the form PROJECT:HOST,HOST in small letters, digits and hyphens.\n")
            return 2
        projects[project] = names
    if not projects:
        sys.stderr.write(__doc__ or "")
        return 2
    make_accounts(Path(arguments[0]), projects)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
