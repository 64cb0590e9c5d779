"""`agent-relay`, and `python -P -m agent_relay`."""

from agent_relay.interpreter import forget_folder


def main() -> int:
    forget_folder()
    from agent_relay.cli.main import main as run  # noqa: PLC0415 - it loads from where it should only now

    return run()


if __name__ == "__main__":
    raise SystemExit(main())
