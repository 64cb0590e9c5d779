"""The person whose daemon this is: the name that what they send is from, on the command line and on the page."""

from __future__ import annotations

import os
import pwd

from agent_relay.protocol.names import person_name


def owner_name() -> str:
    """By the login of this process's user, whatever the environment says: the daemon keeps the same name free for them."""
    try:
        login = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user without an entry, as in some containers
        login = f"uid-{os.geteuid()}"
    return person_name(login)
