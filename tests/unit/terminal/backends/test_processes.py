from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time

from agent_relay.terminal.backends.processes import session_members, signal_session, wait_for_end


def test_the_end_of_a_process_is_told_at_once() -> None:
    async def scene() -> None:
        with subprocess.Popen(["sleep", "1000"]) as process:
            waiting = asyncio.create_task(wait_for_end(process.pid))
            await asyncio.sleep(0)
            assert not waiting.done()
            process.kill()
            await asyncio.wait_for(waiting, 10)  # it is a zombie still; nobody has reaped it
        await asyncio.wait_for(wait_for_end(process.pid), 10)

    asyncio.run(scene())


def test_a_session_is_all_its_groups() -> None:
    script = "import subprocess as s; a = s.Popen(['sleep', '1000'], process_group=0); print(a.pid, flush=True); a.wait()"
    with subprocess.Popen(["python3", "-c", script], stdout=subprocess.PIPE, start_new_session=True, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert {process.pid, child} <= set(session_members(process.pid))
        assert os.getpgid(child) == child
        assert signal_session(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while session_members(process.pid):
        assert time.monotonic() < deadline
    assert not signal_session(process.pid, signal.SIGKILL)
