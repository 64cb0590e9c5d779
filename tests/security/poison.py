"""A folder as it may come from elsewhere: full of Python that leaves a note when it is run."""

from __future__ import annotations

from pathlib import Path

# What Python itself looks for, what we are called, what the standard library and our dependencies are called.
MODULES = (
    "sitecustomize", "usercustomize", "agent_relay/__init__", "agent_relay/__main__", "agent_relay/daemon/__init__",
    "agent_relay/daemon/__main__", "json", "socket", "logging", "tomllib", "shutil", "ssl", "sqlite3", "argparse", "asyncio",
    "email", "tempfile", "http", "secrets", "msgspec", "typer", "rich", "click", "uvloop", "wcwidth", "pyte", "h11",
    "uvicorn", "websockets", "watchfiles", "prometheus_client", "getpass", "difflib", "zoneinfo", "brotli", "orjson",
)  # fmt: skip
_NOTE = """
import sys
with open({witness!r}, "a") as file:
    file.write(f"{{__name__}} in {{sys.orig_argv}}\\n")
"""


class PoisonedFolder:
    """A project whose every module writes down that it was run, and by whom."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._witness = folder.parent / f"{folder.name}.run"
        (folder / ".git").mkdir(parents=True)
        for name in MODULES:
            file = folder / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_NOTE.format(witness=str(self._witness)))

    @property
    def was_run(self) -> list[str]:
        return self._witness.read_text().splitlines() if self._witness.exists() else []
