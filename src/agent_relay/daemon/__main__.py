"""`python -P -m agent_relay.daemon`."""

from agent_relay.interpreter import forget_folder

if __name__ == "__main__":
    forget_folder()
    from agent_relay.daemon.main import main

    raise SystemExit(main())
