"""`python -m agent_relay.daemon`."""

from agent_relay.daemon.main import main

if __name__ == "__main__":
    raise SystemExit(main())
