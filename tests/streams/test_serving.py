"""`mimawari serve` with the streams watch: its internal port, its start and its stop."""

import signal
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import text

from mimawari.kernel.clock import RealClock
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.sites.youtube.programme import Programme
from mimawari.sim.sites.youtube.site import RESOLVER, Live
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.streams import queries, sync
from mimawari.watches.streams.models import Config, Monitor, Status
from mimawari.watches.streams.runner import place
from tests.app.ground import check_error, until
from tests.app.terminal import Serving, Terminal
from tests.conftest import Databases
from tests.faults.streams_world import SECOND, is_there, list_children
from tests.faults.world import running_site
from tests.net.sockets import free_port

INNER_KEY = "the-inner-key"
VIDEO = "serving0001"
REPORT = "Startup Reconciliation Report"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal with a data folder of its own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return Terminal(tmp_path / "data", {"WEBHOOK_SIGNING_KEY": KEY, "TMPDIR": str(folder)})


@pytest.fixture
async def store(databases: Databases) -> AsyncIterator[SqlStore]:
    """A store on a server, as several processes share it."""
    opened = SqlStore(databases.fresh("postgresql"), RealClock())
    await upgrade(opened.database)
    yield opened
    await opened.close()


def url_of(store: SqlStore) -> str:
    """Write where a store is, for another process."""
    url = store.database.url.set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def monitor_of(callback_url: str, status: Status) -> Monitor:
    """Make up a monitor."""
    return Monitor(
        id=sync.new_monitor_id(),
        stream_url=f"https://www.youtube.com/watch?v={VIDEO}",
        callback_url=callback_url,
        config=Config(),
        metadata={},
        status=status,
        created_at=RealClock().now(),
    )


async def status_of(store: SqlStore, monitor: Monitor) -> str:
    """Tell how a monitor stands."""
    async with store.read() as reader:
        view = await queries.find_view(reader, monitor.id)
    assert view is not None
    return str(view.monitor.status)


def put_status(port: int) -> httpx2.Response:
    """Report of a monitor that nobody knows."""
    headers = {"X-Internal-API-Key": INNER_KEY}
    url = f"http://127.0.0.1:{port}/internal/v1/monitors/mon-x/status"
    return httpx2.put(url, json={"status": "waiting"}, headers=headers)


def reports(serving: Serving) -> list[dict[str, object]]:
    """List what was told of comparisons at the start."""
    return [line for line in serving.log() if line["message"] == REPORT]


def test_the_internal_api_is_served_on_a_port_of_its_own(terminal: Terminal) -> None:
    port = free_port()
    given = {"INTERNAL_API_KEY": INNER_KEY, "MIMAWARI_INTERNAL_PORT": str(port)}
    with terminal.serve("--role", "api", **given) as serving:
        serving.facts()
        check_error(put_status(port), 404, "MONITOR_NOT_FOUND")
        assert serving.stop(signal.SIGTERM) == 0
        assert INNER_KEY not in serving.err.read_text()


def test_the_internal_api_is_not_served_without_its_key(terminal: Terminal) -> None:
    port = free_port()
    with terminal.serve("--role", "api", MIMAWARI_INTERNAL_PORT=str(port)) as serving:
        serving.facts()
        with pytest.raises(httpx2.ConnectError):
            put_status(port)


def test_an_internal_port_that_is_taken_is_a_sentence(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = {"INTERNAL_API_KEY": INNER_KEY, "MIMAWARI_INTERNAL_PORT": port}
        sentence = terminal.run("serve", MIMAWARI_PORT="0", **given).refused()
    assert f"127.0.0.1:{port}" in sentence
    assert "MIMAWARI_INTERNAL_PORT" in sentence


async def test_a_start_compares_what_is_monitored_with_what_runs(
    terminal: Terminal, store: SqlStore
) -> None:
    lost = monitor_of("https://receiver.invalid/hook", Status.MONITORING)
    async with store.edit() as tx:
        await sync.add(tx, lost, "test")
    with terminal.serve("--role", "api", MIMAWARI_DATABASE_URL=url_of(store)) as serving:

        async def is_told() -> bool:
            return bool(reports(serving))

        await until(is_told)
        (told,) = reports(serving)
        assert serving.stop(signal.SIGTERM) == 0
    assert told["data"]["missing"] == [lost.id]  # type: ignore[index]
    assert await status_of(store, lost) == "error"


async def test_a_comparison_that_hangs_does_not_hold_up_a_start(
    terminal: Terminal, store: SqlStore
) -> None:
    given = {"MIMAWARI_DATABASE_URL": url_of(store), "GATEWAY_RECONCILE_TIMEOUT": "2s"}
    async with store.database.write() as session:
        await session.execute(text("LOCK TABLE monitors IN ACCESS EXCLUSIVE MODE"))
        with terminal.serve("--role", "api", **given) as serving:
            address = serving.facts()["API"]
            assert httpx2.get(f"{address}/readyz").json() == {"status": "ready"}
            assert reports(serving) == []

            async def is_told() -> bool:
                return bool(reports(serving))

            await until(is_told)
            assert reports(serving)[0]["data"]["timed_out"] is True  # type: ignore[index]
            assert serving.stop(signal.SIGTERM) == 0


async def test_a_stop_during_a_check_is_clean_and_leaves_nothing_behind(
    terminal: Terminal, store: SqlStore
) -> None:
    clock = RealClock()
    live = Live(clock, 1, has_catalogue=False)
    starts_at = clock.now() - 20 * SECOND
    live.put(Programme(video_id=VIDEO, title="見", starts_at=starts_at))
    world = World(clock, (live, Hooks(clock)), 1)
    # Every segment takes so long that a check is under way whenever one looks.
    world.orders.add({"part": "live", "path": f"/live/{VIDEO}/144p/", "do": "slow", "delay_s": 3.0})
    async with running_site(world) as address:
        monitor = monitor_of(f"{address}/hooks/x", Status.INITIALIZING)
        async with store.edit() as tx:
            await sync.add(tx, monitor, "test")
            place(tx, monitor)
        given = {
            "MIMAWARI_DATABASE_URL": url_of(store),
            "MIMAWARI_STREAMS_RESOLVER_URL": f"{address}{RESOLVER}",
            "MIMAWARI_ALLOW_HOSTS": address.removeprefix("http://"),
        }
        with terminal.serve(**given) as serving:

            async def is_under_way() -> bool:
                return bool(world.log.count({"path": f"/live/{VIDEO}/144p/"})["count"])

            await until(is_under_way)
            children = list_children(serving.process.pid)
            assert children
            began = time.monotonic()
            serving.process.send_signal(signal.SIGTERM)

            async def is_stopped() -> bool:
                return serving.process.poll() is not None

            await until(is_stopped)
            assert (serving.process.returncode, time.monotonic() - began < 30) == (0, True)
            assert serving.log()[-1]["message"] == "stopped"
        assert not any(map(is_there, children))
    assert list((terminal.data.parent / "temporary").iterdir()) == []
    # The check came to its end, and what it found is kept.
    assert await status_of(store, monitor) == "monitoring"
