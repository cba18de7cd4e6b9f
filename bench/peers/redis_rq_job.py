"""The job of RQ's program, in a module of its own: the worker imports it by its name."""

handled: list[int] = []


def noop() -> None:
    """Do nothing but count."""
    handled.append(1)
