"""The API's token is not to be read from what a process was started with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SECRET = "s3cret-of-nobody"
SHOW = """
import os
from agent_relay.daemon.secret_variable import forget_api_token, hide_secrets
hide_secrets()
print(os.environ["AGENT_RELAY_API_TOKEN"])
with open("/proc/self/environ", "rb") as file:
    shown = file.read()
print(b"{secret}" in shown, b"OTHER=stays" in shown)
forget_api_token()
print("AGENT_RELAY_API_TOKEN" in os.environ)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_it_is_erased_where_others_look_and_kept_for_us() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW.replace("{secret}", SECRET)], capture_output=True, text=True, check=True,
        env=os.environ | {"AGENT_RELAY_API_TOKEN": SECRET, "OTHER": "stays"},
    )  # fmt: skip
    assert done.stdout.split() == [SECRET, "False", "True", "False"]
