"""The second user that the other tests attack as is one."""

from __future__ import annotations

from pathlib import Path

from tests.security.stranger import STRANGER_UID, needs_root, run_as_stranger


@needs_root
def test_a_stranger_is_somebody_else_and_cannot_read_private_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    code = """
        print(os.getuid())
        try:
            open(sys.argv[1])
        except PermissionError:
            print("refused")
    """
    assert run_as_stranger(code, str(secret)).split() == [str(STRANGER_UID), "refused"]
