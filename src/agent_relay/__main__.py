"""`python -m agent_relay`."""

from agent_relay.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
