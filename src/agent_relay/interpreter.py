"""The way we start Python, in one place: so that nothing in the folder somebody stands in is ever run as part of us.

`python -m` puts the working directory first on the path that modules are looked for on, and an empty part of PYTHONPATH
means that directory as well. In a folder from elsewhere its `agent_relay/` or `wcwidth.py` would be run instead of ours.
"""

from __future__ import annotations

import os
import sys

# -P: the working directory is not on the path. -E: no variable of the surroundings changes what is loaded; they stay as they
# are for the programs that we start. Not -I: that also leaves out the user's own site-packages, where we may be installed.
_MODULE_FLAGS = ("-E", "-P")
_SCRIPT_FLAGS = ("-I", "-S")  # for scripts that need the standard library alone, and are waited for


def run_module(name: str, *words: str) -> list[str]:
    """The command that runs one of our modules."""
    return [sys.executable, *_MODULE_FLAGS, "-m", name, *words]


def run_script(path: str, *words: str) -> list[str]:
    """The command that runs one of our files that stand alone."""
    return [sys.executable, *_SCRIPT_FLAGS, path, *words]


def run_code(code: str, *words: str) -> list[str]:
    """The command that runs a few lines that need the standard library alone."""
    return [sys.executable, *_SCRIPT_FLAGS, "-c", code, *words]


def forget_folder() -> None:
    """For a Python that a person started: from here on nothing is loaded from the working directory. What was loaded before
    we had a word, such as a package of our own name in front of us, only `python -P` can keep out."""
    try:
        here = os.getcwd()
    except OSError:  # it is gone, and so is what lay in it
        return
    if sys.path[:1] == [here] and not sys.flags.safe_path:  # of `python -m`
        del sys.path[0]
    parts = os.environ.get("PYTHONPATH")
    if parts and not sys.flags.ignore_environment:
        from_here = {os.path.abspath(part) for part in parts.split(os.pathsep) if not os.path.isabs(part)}
        sys.path[:] = [entry for entry in sys.path if entry not in from_here]
