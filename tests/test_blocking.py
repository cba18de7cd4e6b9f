"""Nothing unbounded on the event loop: whatever may block is known here, with what bounds it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import mimawari

ROOT = Path(mimawari.__file__).parent
NAMES = {"open", "input"}
ATTRIBUTES = {
    *("read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "iterdir"),
    *("is_file", "is_dir", "exists", "stat", "rmtree", "disk_usage", "copyfile", "glob", "rglob"),
    *("getaddrinfo", "gethostbyname", "gethostbyaddr", "getnameinfo", "flock", "urlopen"),
    *("create_default_context", "which", "rmdir", "scandir"),
}
OWNED = {
    **dict.fromkeys(
        ("open", "read", "write", "pread", "pwrite", "listdir", "fork", "waitpid"), "os"
    ),
    **dict.fromkeys(("run", "Popen", "check_output", "call"), "subprocess"),
    "sleep": "time",
    "system": "os",
    "popen": "os",
}
NOT_SERVING = ("sim/", "cli", "commands/", "judges/", "check", "demo", "migrations/")
"""Parts of paths of what only commands run: whoever waits there is one person."""

THREADS = "in threads, few and with a deadline"
START = "once, before the loop runs or anything is served"
OWN_DATA = "a small file of our own in the data folder, beside the database"
SYSTEM = "a file of the running system, which no disk holds"
BEARABLE = {
    "net/references.py": THREADS,
    "net/guard.py": THREADS,
    "net/browser.py": THREADS,
    "net/chromium.py": f"{THREADS}, or {SYSTEM}",
    "net/seal.py": f"{THREADS}; one byte of an open file just before the last line of a mail",
    "app/process/record.py": f"{OWN_DATA}: {START}, then only in memory",
    "app/process/guard.py": f"{START}, then {SYSTEM} in a thread of its own",
    "app/process/restarting.py": START,
    "app/http/keys.py": START,
    "app/ops.py": f"{START}, or {THREADS}",
    "app/doctor.py": "a command",
    "app/http/tls.py": START,
    "installation.py": "small files of the installation, only where a package is missing",
    "store/sql/contract.py": START,
    "store/sql/link.py": "in the threads of the database's file",
    "kernel/clock.py": SYSTEM,
    "store/redis/link.py": START,
    "store/sql/signal.py": OWN_DATA,
    "web/site.py": START,
    "web/words.py": START,
    "web/reasons.py": START,
    "watches/streams/probe/sources.py": "a command",
}


def calls(source: str) -> Iterator[str]:
    """Name the calls that may block."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in NAMES:
                yield name
            case ast.Call(func=ast.Attribute(attr="open", value=ast.Call())):
                yield "open"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="labels"))):
                # A reader of labels has the name of one of files.
                continue
            case ast.Call(func=ast.Attribute(attr=name)) if name in ATTRIBUTES:
                yield name
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id=owner))):
                if OWNED.get(name) == owner:
                    yield f"{owner}.{name}"


def blocking() -> dict[str, set[str]]:
    """Find the modules of what serves that call something which may block."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if not any(part in name for part in NOT_SERVING):
            found[name] = set(calls(path.read_text("utf-8")))
    return {name: names for name, names in found.items() if names}


def test_whatever_may_block_says_what_bounds_it() -> None:
    found = blocking()
    assert {name: names for name, names in found.items() if name not in BEARABLE} == {}


def test_what_is_listed_is_still_there() -> None:
    assert set(BEARABLE) - set(blocking()) == set()
