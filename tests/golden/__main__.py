"""Compare the responses from golden databases on every engine, or renew them."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.golden.databases import load
from tests.golden.keeping import compare, keep, load_kept
from tests.golden.reading import Responses, read_responses
from tests.servers import ENGINES, mariadb_server, postgres_server

MOST_SHOWN = 300


def read_engine(engine: str, url: str, folder: Path) -> Responses:
    """Load the dump of an engine into an empty database and read all responses from it."""
    load(engine, url)
    return read_responses(folder, url)


def main(words: list[str]) -> int:
    """Compare all engines or those named, after renewing the responses if `renew` is given.

    `read FOLDER URL` writes the responses from a loaded database as JSON instead.
    """
    if words[:1] == ["read"]:
        sys.stdout.write(json.dumps(read_responses(Path(words[1]), words[2])))
        return 0
    wanted = [word for word in words if word in ENGINES] or list(ENGINES)
    if "renew" in words:
        with tempfile.TemporaryDirectory(prefix="mimawari-golden-") as name:
            folder = Path(name)
            keep(read_engine("sqlite", f"sqlite:///{folder}/golden.db", folder))
    failed = False
    for line, is_bad in _compare(wanted):
        failed |= is_bad
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return int(failed)


def _compare(engines: list[str]) -> Iterator[tuple[str, bool]]:
    kept = load_kept()
    with ExitStack() as stack:
        for engine in engines:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mimawari-g-")))
            if engine == "sqlite":
                url = f"sqlite:///{folder}/golden.db"
            else:
                start = postgres_server if engine == "postgresql" else mariadb_server
                url = stack.enter_context(start(durable=False)).fresh_database()
            began = time.monotonic()
            differences = compare(kept, read_engine(engine, url, folder))
            for one in differences[:MOST_SHOWN]:
                yield f"{engine}: {one}", True
            more = len(differences) - MOST_SHOWN
            if more > 0:
                yield f"{engine}: … and {more} differences more", True
            seconds = time.monotonic() - began
            count = sum(map(len, kept.values()))
            yield f"{engine}: {count} responses, {len(differences)} differ ({seconds:.0f} s)", False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
