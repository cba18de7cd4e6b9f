"""The shape of the source: imports go one way, one clock, small functions, every file says why."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import mimawari

ROOT = Path(mimawari.__file__).parent
TESTS = Path(__file__).parent
BASE = {"settings", "errors", "text", "ids", "log", "show", "installation", "__version__"}
MAY_IMPORT = {
    "base": {"base"},
    "columns": {"columns", "base"},
    "wire": {"wire", "base"},
    "kernel": {"kernel", "base"},
    "media": {"media", "base"},
    "net": {"net", "kernel", "base"},
    "sites": {"sites", "media", "net", "kernel", "base"},
    "edges": {"edges", "kernel", "base"},
    "notify": {"notify", "net", "edges", "kernel", "columns", "base"},
    "watches": {
        *("watches", "notify", "sites", "media", "net", "edges", "kernel", "columns", "wire"),
        "base",
    },
    "store": {"store", "kernel", "columns", "wire", "base"},
    "migrations": {"migrations", "store", "watches", "notify", "columns"},
    "sim": {"sim", "kernel", "base"},
    "web": {
        *("web", "app", "watches", "notify", "sites", "net", "store"),
        *("edges", "kernel", "columns", "base"),
    },
    "app": {
        *("app", "web", "sim", "watches", "notify", "sites", "net", "store"),
        *("edges", "kernel", "columns", "base"),
    },
}
DATABASE = {"sqlalchemy", "alembic", "asyncpg", "asyncmy", "sqlite3"}
NO_DATABASE = {"base", "edges", "kernel", "media", "net", "sites", "sim"}
"""Layers that reach no database themselves."""
OFFLINE = {"sync", "tables"}
"""Modules of a watch that never ask a site."""

CHANCE_AND_TIME = {"time", "random", "secrets", "uuid", "uuid_utils"}
ALLOWED_MODULES = {
    ("mimawari.kernel.clock", "time"),
    # Where the system names no boot, a process names its own.
    ("mimawari.kernel.clock", "uuid"),
    ("mimawari.ids", "uuid_utils"),
    # A key must be such that nobody can guess it, on any clock.
    ("mimawari.app.http.keys", "secrets"),
    ("mimawari.web.session", "secrets"),
    # The simulated world is made from a seed, and so the same each time.
    ("mimawari.sim.chance", "random"),
}
ASKED = {"now", "utcnow", "today", "time", "urandom", "sleep"}
ALLOWED_SLEEPS = {
    "mimawari.kernel.clock",
    # Whoever drives a virtual clock waits for what takes real time beside it.
    "mimawari.kernel.rounds",
    # A part that failed is started again in real time.
    "mimawari.app.serve",
    # An upgrade waits for another one of its process, which takes real time on any clock.
    "mimawari.store.sql.migrate",
    # Whoever looks at a page does so in real time.
    "mimawari.web.site",
    # Between slices of unpacking others get their turn, which takes no time.
    "mimawari.net.exchange",
    # A site that is slow is slow in real time, whatever its clock says.
    "mimawari.sim.faults",
}
MOST_LINES, MOST_FUNCTION_LINES = 400, 60

Checker = Callable[[str, str], list[str]]


def layer_of(module: str) -> str:
    """Name the layer of a module of ours."""
    parts = module.split(".")
    if parts[1:] == ["__main__"]:
        # It starts the command line and does nothing else.
        return "app"
    return "base" if len(parts) == 1 or parts[1] in BASE else parts[1]


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """List all that a source is made of, read once for all who look at it."""
    return tuple(ast.walk(ast.parse(source)))


def imports(module: str, source: str, *, is_package: bool) -> Iterator[str]:
    """Name everything a module imports, as far as the import itself tells."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            here = parts[: len(parts) - node.level + is_package] if node.level else []
            where = ".".join([*here, *([node.module] if node.module else [])])
            yield from (f"{where}.{alias.name}" for alias in node.names)


def check_imports(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Complain about imports that go the wrong way."""
    layer = layer_of(module)
    if layer not in MAY_IMPORT:
        return [f"{module} is in no layer we know"]
    found = []
    for name in imports(module, source, is_package=is_package):
        top = name.split(".")[0]
        if top in DATABASE and layer in NO_DATABASE:
            found.append(f"{module} imports {name}, but {layer} knows no database")
        if top == "importlib" and not name.startswith("importlib.metadata"):
            found.append(f"{module} imports {name}, which hides what is imported")
        if top == "mimawari":
            found += _check_ours(module, layer, name)
    found += [
        f"{module} calls __import__, which hides what is imported"
        for node in nodes(source)
        if isinstance(node, ast.Name) and node.id == "__import__"
    ]
    return found


def _check_ours(module: str, layer: str, name: str) -> Iterator[str]:
    if layer_of(name) not in MAY_IMPORT[layer]:
        yield f"{module} imports {name}, but {layer} stands below {layer_of(name)}"
    here, there = module.split("."), name.split(".")
    if layer == "notify" and here[-1] in OFFLINE and layer_of(name) == "net":
        yield f"{module} imports {name}, but {here[-1]} never sends anything"
    if layer != "watches" or len(here) < 3:
        return
    if layer_of(name) == "notify":
        yield f"{module} imports {name}, but a watch tells of things and knows not to whom"
    if layer_of(name) == "watches" and there[1:3] != here[1:3]:
        yield f"{module} imports {name}, which is not its own watch"
    if here[-1] in OFFLINE and layer_of(name) in {"net", "sites"}:
        yield f"{module} imports {name}, but {here[-1]} never asks a site"


def check_time(module: str, source: str) -> list[str]:
    """Complain about a second source of time, sleep or chance."""
    found = []
    for name in imports(module, source, is_package=False):
        top = name.split(".")[0]
        if top in CHANCE_AND_TIME and (module, top) not in ALLOWED_MODULES:
            found.append(f"{module} imports {name}")
        if name in {"asyncio.sleep", "os.urandom"}:
            found.append(f"{module} imports {name}")
    classes = {"datetime", "date"} | {
        alias.asname
        for node in nodes(source)
        if isinstance(node, ast.ImportFrom) and node.module == "datetime"
        for alias in node.names
        if alias.asname and alias.name in {"datetime", "date"}
    }
    for node in nodes(source):
        if isinstance(node, ast.Attribute) and node.attr in ASKED:
            owner = ast.unparse(node.value).split(".")[-1]
            if node.attr in {"now", "utcnow", "today"} and owner in classes:
                found.append(f"{module} asks {owner}.{node.attr} for the time")
            if node.attr == "time" and owner.removesuffix("()") in {"loop", "get_running_loop"}:
                found.append(f"{module} asks the loop for the time")
            if (owner, node.attr) == ("os", "urandom"):
                found.append(f"{module} asks the system for chance")
            if (owner, node.attr) == ("asyncio", "sleep") and module not in ALLOWED_SLEEPS:
                found.append(f"{module} sleeps past the clock")
    return found


def check_size(module: str, source: str) -> list[str]:
    """Complain about what is too long to be read at once; a migration is written once."""
    if layer_of(module) == "migrations":
        return []
    lines = len(source.splitlines())
    found = [f"{module} has {lines} lines"] if lines > MOST_LINES else []
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MOST_FUNCTION_LINES:
                found.append(f"{module}.{node.name} has {length} lines")
    return found


def check_docstring(module: str, source: str) -> list[str]:
    """Complain about a file that does not say what it is for."""
    whole = nodes(source)[0]
    assert isinstance(whole, ast.Module)
    return [] if ast.get_docstring(whole) else [f"{module} has no docstring"]


def modules(root: Path = ROOT) -> list[tuple[str, Path]]:
    """List every module of the package, or of another."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def complaints(check: Checker, root: Path = ROOT) -> list[str]:
    return [
        complaint
        for module, path in modules(root)
        for complaint in check(module, path.read_text(encoding="utf-8"))
    ]


def test_the_whole_package_is_looked_at() -> None:
    names = {module for module, _ in modules()}
    assert len(names) > 50
    assert {"mimawari", "mimawari.kernel.clock", "mimawari.watches._template.sync"} <= names
    assert {layer_of(name) for name in names} <= MAY_IMPORT.keys()


def test_imports_go_one_way() -> None:
    found = [
        complaint
        for module, path in modules()
        for complaint in check_imports(
            module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py"
        )
    ]
    assert found == []


def test_there_is_one_source_of_time_and_of_chance() -> None:
    assert complaints(check_time) == []


def test_no_exception_is_kept_that_nobody_needs() -> None:
    used = set()
    for module, path in modules():
        source = path.read_text(encoding="utf-8")
        names = {name.split(".")[0] for name in imports(module, source, is_package=False)}
        used |= {(module, top) for top in names & CHANCE_AND_TIME}
        if "asyncio.sleep(" in source:
            used.add((module, "sleep"))
    assert used == ALLOWED_MODULES | {(module, "sleep") for module in ALLOWED_SLEEPS}


@pytest.mark.parametrize("root", [ROOT, TESTS, TESTS.parent / "bench"], ids=lambda root: root.name)
def test_no_file_and_no_function_is_too_long(root: Path) -> None:
    assert complaints(check_size, root) == []


def test_every_module_says_what_it_is_for() -> None:
    assert complaints(check_docstring) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mimawari.kernel.a", "from mimawari.store.sql import SqlStore"),
        ("mimawari.kernel.a", "import mimawari.store"),
        ("mimawari.kernel.a", "from mimawari import store"),
        ("mimawari.kernel.a", "from .. import store"),
        ("mimawari.kernel.a", "from ..store.sql import engine"),
        ("mimawari.kernel.a", "def f():\n    from mimawari.app import ops"),
        ("mimawari.kernel.a", "if TYPE_CHECKING:\n    import sqlalchemy"),
        ("mimawari.kernel.a", "from sqlalchemy.exc import IntegrityError"),
        ("mimawari.kernel.a", "from importlib import import_module"),
        ("mimawari.kernel.a", "store = __import__('mimawari.store')"),
        ("mimawari.text", "from mimawari.kernel.job import Job"),
        ("mimawari.store.sql.a", "from mimawari.app import ops"),
        ("mimawari.store.sql.a", "from mimawari.watches import INSTALLED"),
        ("mimawari.net.a", "from mimawari.sites import counting"),
        ("mimawari.sites.a", "from sqlalchemy import select"),
        ("mimawari.sites.a", "from mimawari.watches import example"),
        ("mimawari.watches.a.tasks", "from mimawari.store.sql import SqlStore"),
        ("mimawari.watches.a.tasks", "from mimawari.app.ops import System"),
        ("mimawari.watches.a.tasks", "from mimawari.watches.b import rules"),
        ("mimawari.watches.a.tasks", "from mimawari.watches import INSTALLED"),
        ("mimawari.watches.a.sync", "from mimawari.sites import counting"),
        ("mimawari.watches.a.tables", "from mimawari.net import client"),
        ("mimawari.watches.a.tasks", "from mimawari.notify import sync"),
        ("mimawari.notify.sync", "from mimawari.net import guard"),
        ("mimawari.notify.rules", "from mimawari.watches import INSTALLED"),
        ("mimawari.unheard_of.a", ""),
    ],
)
def test_an_import_that_goes_the_wrong_way_is_noticed(module: str, source: str) -> None:
    assert len(check_imports(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mimawari.kernel.a", "from mimawari.errors import Wait\nfrom . import job"),
        ("mimawari.kernel.a", "from mimawari import log"),
        ("mimawari.app.a", "from mimawari.web import pages\nimport mimawari.store.sql"),
        # It reads what pip has written, and imports nothing.
        ("mimawari.text", "from importlib import metadata"),
        ("mimawari.watches", "from mimawari.watches.a import watch"),
        ("mimawari.watches.a.tasks", "from mimawari.watches.a import rules\nimport sqlalchemy"),
        ("mimawari.watches.a.tasks", "from mimawari.sites import counting"),
    ],
)
def test_an_import_that_goes_the_right_way_is_not_complained_of(module: str, source: str) -> None:
    assert check_imports(module, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import monotonic",
        "import random as r",
        "from secrets import token_hex",
        "from uuid import uuid4",
        "from asyncio import sleep",
        "from os import urandom",
        "import os\nos.urandom(8)",
        "import asyncio\nasync def f():\n    await asyncio.sleep(1)",
        "from datetime import datetime\ndatetime.now(UTC)",
        "from datetime import datetime as d\nd.now(UTC)",
        "import datetime\ndatetime.datetime.utcnow()",
        "from datetime import date\ndate.today()",
        "from datetime import datetime\nmake = datetime.now",
        "import asyncio\nasyncio.get_running_loop().time()",
    ],
)
def test_a_second_clock_is_noticed(source: str) -> None:
    assert len(check_time("mimawari.kernel.a", source)) == 1


def test_the_clock_of_the_kernel_is_no_second_clock() -> None:
    source = "clock.now()\nself._clock.sleep(span)\nat.time()\ndatetime.fromtimestamp(5, UTC)"
    assert check_time("mimawari.kernel.a", source) == []


def test_what_is_too_long_is_noticed_and_what_is_just_short_enough_is_not() -> None:
    body = "    pass\n"
    assert check_size("mimawari.a", "def f():\n" + body * 59) == []
    assert check_size("mimawari.a", "def f():\n" + body * 60) == ["mimawari.a.f has 61 lines"]
    assert check_size("mimawari.a", "async def f():\n" + body * 60) != []
    assert check_size("mimawari.a", "\n" * 400) == []
    assert check_size("mimawari.a", "\n" * 401) == ["mimawari.a has 401 lines"]
    assert check_size("mimawari.migrations.versions.a", "\n" * 401) == []


def test_a_module_without_a_docstring_is_noticed() -> None:
    assert check_docstring("mimawari.a", '"""What it is for."""') == []
    assert check_docstring("mimawari.a", "# What it is for.\nx = 1") != []
    assert check_docstring("mimawari.a", "") != []
