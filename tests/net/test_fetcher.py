"""The fetcher against the simulated world's orders: the right outcome each time, politely."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from mimawari.errors import BadInput, Blocked, Gone, Invalid, Transient, Wait
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.limits import VALID_FOR
from mimawari.kernel.values import BreakerPolicy
from mimawari.net.page import Known, Outcome, Page, Verdict
from mimawari.sim.world import World
from tests.net.fetching import SITE, WATCHES, Ground, open_ground
from tests.net.sockets import free_port, open_trap
from tests.sim.ground import PAGE, Toy, serve

HOUR = timedelta(hours=1)


@dataclass(slots=True)
class Scene:
    """A fetcher's ground and a world to ask."""

    ground: Ground
    world: World
    toy: Toy
    address: str

    def order(self, **order: Any) -> None:
        """Tell the world what to do from now on."""
        self.world.orders.add({"part": "toy", **order})

    async def fetch(self, path: str = "/toy/page", **more: Any) -> Page:
        """Ask for a page on behalf of a new job."""
        fetcher = await self.ground.fetcher()
        return await fetcher.fetch(more.pop("site", SITE), f"{self.address}{path}", **more)

    def seen(self, part: str = "toy") -> int:
        """Count what the world was asked."""
        count: int = self.world.log.count({"part": part})["count"]
        return count


@pytest.fixture
async def scene(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Scene]:
    toy = Toy()
    world = World(clock, (toy,), 1)
    async with serve(world) as http, open_ground(tmp_path, clock) as ground:
        yield Scene(ground, world, toy, str(http.base_url).rstrip("/"))


async def test_a_page_comes_back_whole_with_what_it_is_known_by(scene: Scene) -> None:
    page = await scene.fetch()
    assert (page.status, page.outcome, page.body.decode()) == (200, Outcome.OK, PAGE)
    assert page.url == f"{scene.address}/toy/page"
    assert page.known.etag
    assert page.known.last_modified


async def test_a_page_that_is_known_is_seen_and_not_sent_again(scene: Scene) -> None:
    known = (await scene.fetch()).known
    for way in (known, Known(etag=known.etag), Known(last_modified=known.last_modified)):
        again = await scene.fetch(known=way)
        assert (again.outcome, again.body) == (Outcome.NOT_MODIFIED, b"")
    scene.toy.page += "<p>more</p>"
    assert (await scene.fetch(known=known)).outcome == Outcome.OK
    assert scene.seen() == 5


async def test_we_name_ourselves_and_whom_to_tell(tmp_path: Path, clock: VirtualClock) -> None:
    world = World(clock, (Toy(),), 1)
    async with (
        serve(world) as http,
        open_ground(tmp_path, clock, contact="mailto:ann@example.com") as ground,
    ):
        await (await ground.fetcher()).fetch(SITE, f"{http.base_url}/toy/page")
    agents = {seen["user_agent"] for seen in world.log.list({})["seen"]}
    assert len(agents) == 1
    assert agents.pop().startswith("mimawari/")
    assert {seen["part"] for seen in world.log.list({})["seen"]} == {"robots", "toy"}


ORDERS: list[tuple[dict[str, Any], type[Exception] | Outcome]] = [
    ({"do": "gone"}, Gone),
    ({"do": "status", "code": 410}, Gone),
    ({"do": "blocked"}, Blocked),
    ({"do": "status", "code": 403}, Blocked),
    ({"do": "challenge", "code": 403}, Blocked),
    ({"do": "challenge", "code": 503}, Blocked),
    ({"do": "rate_limited"}, Blocked),
    ({"do": "status", "code": 500}, Transient),
    ({"do": "status", "code": 503}, Transient),
    ({"do": "status", "code": 400}, Invalid),
    ({"do": "empty"}, Outcome.EMPTY),
    ({"do": "article"}, Outcome.OK),
    ({"do": "changed_layout"}, Outcome.OK),
    ({"do": "garbage"}, Outcome.OK),
    ({"do": "encoding"}, Outcome.OK),
    ({"do": "nested"}, Outcome.OK),
    ({"do": "reset"}, Transient),
    ({"do": "wrong_length"}, Transient),
    ({"do": "redirect", "loop": True}, Transient),
    ({"do": "redirect", "url": "javascript:alert(1)"}, Invalid),
    ({"do": "redirect", "url": "http://host:port/"}, Invalid),
]


@pytest.mark.parametrize(("order", "expected"), ORDERS, ids=lambda value: str(value)[:60])
async def test_each_thing_that_a_site_may_do_has_its_outcome(
    order: dict[str, Any], expected: type[Exception] | Outcome, scene: Scene
) -> None:
    scene.order(**order)
    if isinstance(expected, Outcome):
        assert (await scene.fetch()).outcome == expected
    else:
        with pytest.raises(expected) as raised:
            await scene.fetch()
        assert type(raised.value) is expected
    assert 1 <= scene.seen() <= 6


@pytest.mark.parametrize(("code", "method"), [(301, "GET"), (303, "GET"), (307, "POST")])
async def test_a_redirect_is_followed_with_its_method_and_body_where_it_keeps_them(
    code: int, method: str, scene: Scene
) -> None:
    scene.order(do="redirect", path="/toy/old", url="/toy/new", code=code)
    page = await scene.fetch("/toy/old", method="POST", body=b"words")
    assert page.url == f"{scene.address}/toy/new"
    [old, new] = scene.world.log.list({"part": "toy"})["seen"]
    assert (old["method"], new["method"]) == ("POST", method)
    assert scene.toy.bodies == [b"words" if method == "POST" else b""]


async def test_another_origin_is_told_no_header_of_the_first(
    scene: Scene, tmp_path: Path, clock: VirtualClock
) -> None:
    told: list[Mapping[str, str]] = []

    async def listen(scope: Any, receive: Any, send: Any) -> None:
        del receive
        told.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    async with serve(listen) as other:
        scene.order(do="redirect", url=f"{other.base_url}/away")
        await scene.fetch(headers={"X-Key": "secret", "Accept": "text/html"})
    assert len(told) == 2
    assert told[1]["accept"] == "text/html"
    assert "x-key" not in told[1]
    assert told[1]["user-agent"].startswith("mimawari/")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "page",
        "//host/page",
        "ftp://host/",
        "http://",
        "http:///x",
        "http://\x00/",
        "http://a\ud800",
    ],
)
async def test_what_is_no_address_is_said_so(url: str, scene: Scene) -> None:
    with pytest.raises(BadInput, match="address"):
        await (await scene.ground.fetcher()).fetch(SITE, url)
    assert scene.seen() == 0


async def test_a_redirect_into_this_machine_reaches_nothing(
    tmp_path: Path, clock: VirtualClock
) -> None:
    world = World(clock, (Toy(),), 1)
    async with open_trap() as trap, serve(world) as http:
        host = f"127.0.0.1:{http.base_url.port}"
        async with open_ground(tmp_path, clock, allow_hosts=(host,)) as ground:
            for name in ("127.0.0.1", "localhost", "[::1]", "0", "2130706433", "127.1"):
                world.orders.clear()
                url = f"http://{name}:{trap.port}/"
                world.orders.add({"part": "toy", "do": "redirect", "url": url})
                with pytest.raises(BadInput):
                    await (await ground.fetcher()).fetch(SITE, f"{http.base_url}/toy/page")
        assert await trap.came() == 0


async def test_a_site_has_the_first_word_on_its_replies(scene: Scene) -> None:
    def judge(page: Page) -> Verdict | None:
        return Verdict(Outcome.BLOCKED, "its own sign") if b"row" in page.body else None

    site = replace(SITE, judge=judge)
    with pytest.raises(Blocked, match="its own sign"):
        await scene.fetch(site=site)
    assert (await scene.fetch("/toy/api", site=site)).outcome == Outcome.OK


async def test_a_site_that_says_when_to_come_again_is_left_alone_until_then(
    scene: Scene, clock: VirtualClock
) -> None:
    scene.order(do="rate_limited", retry_after=600, times=1)
    with pytest.raises(Blocked) as blocked:
        await scene.fetch()
    assert blocked.value.until == clock.now() + timedelta(seconds=600)
    with pytest.raises(Wait, match="429") as wait:
        await scene.fetch()
    assert wait.value.until == clock.now() + timedelta(seconds=600)
    assert wait.value.blocked_by == "limit many"
    assert scene.seen() == 1
    await clock.advance(timedelta(seconds=600))
    assert (await scene.fetch()).status == 200


async def test_nothing_is_asked_of_a_site_whose_breaker_is_open(
    scene: Scene, clock: VirtualClock
) -> None:
    early = await scene.ground.fetcher()
    url = f"{scene.address}/toy/page"
    await early.fetch(SITE, url)
    await scene.ground.store.breaker.failed("toy", BreakerPolicy(failures=1), "blocked", None)
    for fetcher in (early, await scene.ground.fetcher()):
        with pytest.raises(Wait) as wait:
            await fetcher.fetch(SITE, url)
        assert wait.value.blocked_by == "breaker toy"
    assert scene.seen() == 1


async def test_every_request_needs_leave_of_its_own_also_a_hop(scene: Scene) -> None:
    scene.order(do="redirect", path="/toy/old", url="/toy/new")
    fetcher = await scene.ground.fetcher("few")
    with pytest.raises(Wait) as wait:
        await fetcher.fetch(SITE, f"{scene.address}/toy/old")
    assert wait.value.blocked_by == "limit few"
    assert scene.seen() == 1


@pytest.mark.parametrize("is_there", [False, True], ids=["no connection", "a broken reply"])
async def test_only_what_may_have_been_sent_counts(scene: Scene, *, is_there: bool) -> None:
    if is_there:
        scene.order(do="reset", path="/toy/page")
    fetcher = await scene.ground.fetcher("few")
    address = scene.address if is_there else f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Transient):
        await fetcher.fetch(SITE, f"{address}/toy/page")
    few = WATCHES.limit("few")
    assert await scene.ground.store.limiter.used(few) == int(is_there)
    assert scene.seen() == int(is_there)


async def test_leave_that_has_run_out_is_not_used(scene: Scene, clock: VirtualClock) -> None:
    fetcher = await scene.ground.fetcher("few")
    await clock.advance(VALID_FOR)
    with pytest.raises(Wait):
        await fetcher.fetch(SITE, f"{scene.address}/toy/page")
    assert scene.seen() == 0


async def test_a_request_without_a_limit_is_a_bug(scene: Scene) -> None:
    fetcher = await scene.ground.fetcher()
    context: Any = fetcher._context  # noqa: SLF001 - a task that forgot its limit
    context._asked, context._unused = None, []  # noqa: SLF001
    with pytest.raises(LookupError, match="without a limit"):
        await fetcher.fetch(SITE, f"{scene.address}/toy/page")
    assert scene.seen() == 0


async def test_each_request_is_logged_with_who_what_result_reason_and_next(scene: Scene) -> None:
    with capture_logs() as lines:
        await scene.fetch()
        scene.order(do="rate_limited", retry_after=60, times=1)
        with pytest.raises(Blocked):
            await scene.fetch()
    asked = [line for line in lines if line["component"] == "fetch"]
    assert [line["result"] for line in asked] == ["ok", "rate_limited"]
    for line in asked:
        assert line["who"] == "worker"
        assert line["what"] == f"GET {scene.address}/toy/page"
        assert line["site"] == "toy"
    assert "429" in asked[1]["reason"]
    assert asked[1]["next"] is not None
    json.dumps(asked)


async def test_in_virtual_time_the_world_is_asked_inside_the_process(
    tmp_path: Path, clock: VirtualClock
) -> None:
    world = World(clock, (Toy(),), 1)
    inside = httpx2.ASGITransport(app=world)
    async with open_ground(tmp_path, clock, inside) as ground:
        page = await (await ground.fetcher()).fetch(SITE, "http://world/toy/page")
    assert page.body.decode() == PAGE
    assert world.log.count({"part": "toy"})["count"] == 1
