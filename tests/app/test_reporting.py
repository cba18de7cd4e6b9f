"""Errors that nobody expected: the log hears of all, those outside of what may be told."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, Request

from mimawari import __version__
from mimawari.app.reporting.reporters import MOST, Reporters, open_reporter
from mimawari.errors import Invalid
from mimawari.installation import install_advice
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, JobView, NewJob, State
from mimawari.kernel.ports import Reporter
from mimawari.kernel.values import Trouble
from mimawari.kernel.watch import Task, Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.settings import FILE, Settings
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.app.ground import check_error, open_api, until
from tests.app.outside import BUGSNAG_KEY, SENTRY_KEY, Listener, listening
from tests.app.terminal import Terminal
from tests.conftest import Databases

SECRET = "hush-4711"
LOST = "not reported"
LEFT_OUT = "more of it goes to the log only"
END_SECONDS = 20.0
"""Longer than the end of the process waits, and shorter than Sentry's own patience."""


@pytest.fixture
def outside() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


@pytest.fixture(scope="module")
async def store(databases: Databases) -> AsyncIterator[SqlStore]:
    """A store on SQLite that the tests of this module share."""
    store = SqlStore(databases.fresh("sqlite"), VirtualClock())
    await upgrade(store.database)
    yield store
    await store.close()


@task("report.bug", attempts=1)
async def bug(job: Job, ctx: Context) -> None:
    """Raise what nobody expects, with secrets wherever one may be."""
    secret = f"{job.args['word']}-in-a-variable"
    try:
        int(f"{secret} in what caused it")
    except ValueError as error:
        raised = RuntimeError(f"{secret} in a message")
        raised.add_note(f"{secret} in a note")
        raise raised from error


@task("report.page", attempts=1)
async def page(job: Job, ctx: Context) -> None:
    """Meet a page that is not understood."""
    raise Invalid(f"no price in {job.args['word']}", page=f"<p>{SECRET}".encode())


def read(lines: io.StringIO, message: str) -> list[dict[str, Any]]:
    """List what the log says under a message."""
    found = map(json.loads, lines.getvalue().splitlines())
    return [line for line in found if line["message"] == message]


async def run(store: SqlStore, reporter: Reporter, one: Task) -> JobView:
    """Put a job and let a real worker run it to its end."""
    new = NewJob(kind=one.kind, args={"word": SECRET}, target="report:one")
    await store.queue.put([new])
    watches = Watches([Watch(name="report", tasks=(one,))])
    worker = Worker(store, VirtualClock(), watches, name="w", reporter=reporter)
    while await worker.turn() or worker.running or worker.unsaid:
        await asyncio.sleep(0)
    view = await store.queue.find(new.id)
    assert view is not None
    return view


async def test_a_bug_is_told_once_to_everybody_with_the_job_and_without_a_secret(
    store: SqlStore, outside: Listener, lines: io.StringIO
) -> None:
    settings = Settings(api_keys=(SECRET,), **outside.given)
    async with open_reporter(settings) as reporter:
        view = await run(store, reporter, bug)
        await outside.until(1)
    assert view.state == State.FAILED
    (event,), (payload,) = outside.events, outside.payloads
    about = {"component": "worker", "what": "report.bug", "id": view.id, "target": "report:one"}
    assert event["tags"] == about | {"attempt": "1"}
    assert payload["metaData"].pop("mimawari") == about | {"attempt": 1}
    assert not any(payload["metaData"].values())
    assert SECRET.encode() not in b"".join(outside.heard)
    (line,) = read(lines, "job raised a bug")
    assert line["level"] == "ERROR"
    assert line["component"] == "worker"
    assert "in a message" in line["trace"]
    assert list(line["data"]) == ["what", "id", "target", "attempt", "result", "reason", "next"]
    assert (line["data"]["what"], line["data"]["result"]) == ("report.bug", "failed")


async def test_the_way_to_an_error_is_told_and_nothing_is_gathered_beside_it(
    store: SqlStore, outside: Listener
) -> None:
    async with open_reporter(Settings(**outside.given)) as reporter:
        await run(store, reporter, bug)
        await outside.until(1)
    (event,), (payload,) = outside.events, outside.payloads
    assert set(event) == {
        *("event_id", "timestamp", "level", "message", "transaction", "tags", "exception"),
        *("release", "environment", "server_name", "sdk", "platform"),
    }
    assert (event["release"], event["server_name"]) == (f"mimawari@{__version__}", "")
    assert event["sdk"]["integrations"] == []
    assert [value["type"] for value in event["exception"]["values"]] == [
        "ValueError",
        "RuntimeError",
    ]
    steps = event["exception"]["values"][-1]["stacktrace"]["frames"]
    assert steps[-1]["function"] == "bug"
    assert {frozenset(step) for step in steps} == {
        frozenset({"filename", "lineno", "function", "in_app"})
    }
    files = {step["filename"] for step in steps}
    assert files == {"mimawari/kernel/worker.py", "tests/app/test_reporting.py"}
    assert payload["app"]["version"] == __version__
    assert payload["device"]["hostname"] == payload["projectRoot"] == payload["libRoot"] == ""
    assert payload["breadcrumbs"] == []
    assert [shown["errorClass"] for shown in payload["exceptions"]] == [
        "RuntimeError",
        "ValueError",
    ]
    assert payload["exceptions"][0]["stacktrace"][0]["method"] == "bug"
    assert {step["file"] for step in payload["exceptions"][0]["stacktrace"]} == files


async def test_a_dead_letter_is_told_without_its_page_or_its_reason(
    store: SqlStore, outside: Listener, lines: io.StringIO
) -> None:
    async with open_reporter(Settings(**outside.given)) as reporter:
        view = await run(store, reporter, page)
        await outside.until(1)
    assert view.state == State.FAILED
    (event,), (payload,) = outside.events, outside.payloads
    assert (event["level"], event["message"]) == ("warning", "job ended")
    assert event["exception"]["values"][-1]["type"] == "Invalid"
    assert (payload["severity"], payload["context"]) == ("warning", "report.page")
    assert SECRET.encode() not in b"".join(outside.heard)
    (line,) = read(lines, "job ended")
    assert (line["level"], line["data"]["result"]) == ("WARN", "failed")
    assert SECRET in line["data"]["reason"]


async def until_lost(lines: io.StringIO) -> None:
    """Wait until the log says that neither could be told."""

    async def is_lost() -> bool:
        return {line["data"]["what"] for line in read(lines, LOST)} == {"Sentry", "BugSnag"}

    await until(is_lost)


def free_port() -> int:
    """Name a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def test_a_dead_server_changes_nothing_for_the_job_and_the_log_says_so(
    store: SqlStore, lines: io.StringIO
) -> None:
    dead = Listener(port=free_port())
    async with open_reporter(Settings(**dead.given)) as reporter:
        view = await run(store, reporter, bug)
        await until_lost(lines)
    assert view.state == State.FAILED
    assert len(read(lines, "job raised a bug")) == 1
    assert SENTRY_KEY not in lines.getvalue()
    assert BUGSNAG_KEY not in lines.getvalue()


async def test_a_server_that_refuses_is_named_in_the_log(
    store: SqlStore, lines: io.StringIO
) -> None:
    with listening(status=403) as outside:
        async with open_reporter(Settings(**outside.given)) as reporter:
            await run(store, reporter, bug)
            await outside.until(1)
            await until_lost(lines)
    assert all("403" in line["data"]["reason"] for line in read(lines, LOST))
    assert BUGSNAG_KEY not in lines.getvalue()


async def test_a_server_that_never_answers_holds_up_neither_the_job_nor_the_end(
    store: SqlStore,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = Listener(port=silent.getsockname()[1])
        async with asyncio.timeout(END_SECONDS):
            async with open_reporter(Settings(**hanging.given)) as reporter:
                assert (await run(store, reporter, bug)).state == State.FAILED


def trouble(what: str = "some.kind") -> Trouble:
    """Make trouble of a kind."""
    return Trouble(component="worker", message="odd", what=what, line={"what": what})


async def test_of_a_flood_ten_a_minute_are_told_outside_and_all_to_the_log(
    outside: Listener, lines: io.StringIO, clock: VirtualClock
) -> None:
    async with open_reporter(Settings(**outside.given), clock) as reporter:
        for _ in range(25):
            reporter.report(trouble())
        reporter.report(trouble("other.kind"))
        await clock.advance(timedelta(seconds=59))
        reporter.report(trouble())
        await outside.until(MOST + 1)
        assert len(read(lines, "odd")) == 27
        (said,) = read(lines, LEFT_OUT)
        assert said["data"]["what"] == "some.kind"
        await clock.advance(timedelta(seconds=1))
        for _ in range(25):
            reporter.report(trouble())
        await outside.until(2 * MOST + 1)
    kinds = [event["tags"]["what"] for event in outside.events]
    assert (kinds.count("some.kind"), kinds.count("other.kind")) == (2 * MOST, 1)
    assert len(outside.payloads) == 2 * MOST + 1
    assert len(read(lines, "odd")) == 52
    assert len(read(lines, LEFT_OUT)) == 2


class Broken:
    """Somebody outside who breaks when told."""

    name = "broken"

    def report(self, trouble: Trouble) -> None:
        """Break."""
        raise OSError(f"no room for {trouble.what}")

    def flush(self, seconds: float) -> None:
        """Have nothing to send."""


class Hearing(Broken):
    """Somebody outside who hears."""

    def __init__(self) -> None:
        self.heard: list[Trouble] = []

    def report(self, trouble: Trouble) -> None:
        """Remember it."""
        self.heard.append(trouble)


def test_one_who_cannot_be_told_keeps_nobody_else_from_hearing(
    lines: io.StringIO, clock: VirtualClock
) -> None:
    hearing = Hearing()
    Reporters([Broken(), hearing], clock).report(trouble())
    assert hearing.heard == [trouble()]
    assert len(read(lines, "odd")) == 1
    (line,) = read(lines, LOST)
    assert (line["data"]["what"], "no room" in line["trace"]) == ("broken", True)


broken_router = APIRouter()


@broken_router.post("/api/broken/{name}")
async def be_broken(name: str, request: Request) -> None:
    """Raise what nobody expects, with all that was asked at hand."""
    asked = (name, request.headers, request.query_params, await request.body())
    raise RuntimeError(f"a bug with {asked}")


async def test_a_bug_behind_the_api_is_told_by_its_route_and_answered_in_the_envelope(
    databases: Databases, tmp_path: Path, outside: Listener, lines: io.StringIO
) -> None:
    watch = Watch(name="broken", tasks=(), router=f"{__name__}:broken_router")
    url = databases.fresh("sqlite")
    async with open_api(url, tmp_path, watches=[watch], **outside.given) as api:
        response = await api.http.post(
            f"/api/broken/{SECRET}",
            params={"word": SECRET},
            headers={"X-Word": SECRET},
            json={"word": SECRET},
        )
        assert "log" in check_error(response, 500, "internal")
        assert (await api.http.get("/api/broken/x")).status_code == 405
        await outside.until(1)
    (event,), (payload,) = outside.events, outside.payloads
    assert event["tags"] == {"component": "api", "what": "POST /api/broken/{name}"}
    assert payload["context"] == "POST /api/broken/{name}"
    assert SECRET.encode() not in b"".join(outside.heard)
    (line,) = read(lines, "a request failed")
    assert (line["level"], line["component"]) == ("ERROR", "api")
    assert line["data"] == {"what": f"/api/broken/{SECRET}", "result": "500"}
    assert "RuntimeError: a bug with" in line["trace"]


async def test_what_serves_tells_of_a_dead_letter_and_stops_well(
    terminal: Terminal, outside: Listener
) -> None:
    terminal.data.mkdir()
    store = SqlStore(f"sqlite:///{terminal.data / FILE}", VirtualClock())
    await upgrade(store.database)
    (job_id,) = await store.queue.put([NewJob(kind="nobody.runs")])
    await store.close()
    with terminal.serve("--role", "janitor", **outside.variables) as serving:
        await outside.until(1)
        assert await asyncio.to_thread(serving.stop, 15) == 0
        (line,) = [line for line in serving.log() if line["message"] == "buried"]
    assert line["data"]["id"] == job_id
    (event,), (payload,) = outside.events, outside.payloads
    assert (event["tags"]["what"], event["tags"]["id"]) == ("nobody.runs", job_id)
    assert payload["metaData"]["mimawari"]["id"] == job_id
    assert payload["exceptions"][0]["stacktrace"] == []


@pytest.fixture
def bare(terminal: Terminal, tmp_path: Path) -> Terminal:
    """A terminal where neither package is installed."""
    folder = tmp_path / "without"
    folder.mkdir()
    for name in ("sentry_sdk", "bugsnag"):
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})")
    return Terminal(terminal.data, {"PYTHONPATH": str(folder)})


@pytest.mark.parametrize(
    ("name", "value", "extra"),
    [
        ("MIMAWARI_SENTRY_DSN", f"https://{SENTRY_KEY}@127.0.0.1/42", "sentry"),
        ("MIMAWARI_BUGSNAG_KEY", BUGSNAG_KEY, "bugsnag"),
    ],
)
def test_a_package_that_is_missing_is_said_with_what_to_install(
    bare: Terminal, name: str, value: str, extra: str
) -> None:
    sentence = bare.run_program("serve", MIMAWARI_PORT="0", **{name: value}).refused()
    assert sentence.startswith(f"{name} is set, but ")
    assert install_advice(extra) in sentence
    assert value not in sentence


def test_the_doctor_says_what_is_missing(bare: Terminal) -> None:
    said = bare.run_program("doctor", "--json", MIMAWARI_BUGSNAG_KEY=BUGSNAG_KEY)
    (bad,) = [check for check in json.loads(said.out) if not check["ok"]]
    assert (said.code, bad["name"]) == (1, "errors go to")
    assert install_advice("bugsnag") in bad["advice"]


def test_nobody_needs_the_packages_who_does_not_ask_for_them(bare: Terminal) -> None:
    checks = bare.run_program("doctor", "--json").json()
    (found,) = [check["found"] for check in checks if check["name"] == "errors go to"]
    assert found == "the log"


def test_the_doctor_names_everybody_who_is_told_and_no_key(
    terminal: Terminal, outside: Listener
) -> None:
    said = terminal.run("doctor", "--json", **outside.variables)
    (found,) = [check["found"] for check in said.json() if check["name"] == "errors go to"]
    assert found == "the log, Sentry, BugSnag"
    assert SENTRY_KEY not in said.out
    assert BUGSNAG_KEY not in said.out
    assert outside.heard == []
