"""The page that answers why something waits, and the schedule to choose from."""

from datetime import timedelta

from markupsafe import escape

from mimawari.kernel.job import NewJob
from mimawari.kernel.values import Entry
from mimawari.web.why import A_PAGE
from tests.web.ground import Browser
from tests.web.scene import HOSTILE

ENGLISH = {"Accept-Language": "en"}


async def place(visitor: Browser, *members: str) -> None:
    """Put targets on the schedule."""
    at = visitor.api.system.clock.now() + timedelta(hours=2)
    every = timedelta(hours=3)
    await visitor.api.store.schedule.put(
        [
            Entry(member=name, kind="hot.crawl", next_at=at, every=every, reason="interval")
            for name in members
        ]
    )


async def test_an_empty_schedule_says_so(visitor: Browser) -> None:
    assert "まだ予定がありません" in await visitor.see("/why")
    assert "Nothing is on the schedule yet" in await visitor.see("/why", **ENGLISH)


async def test_a_target_is_explained_and_so_is_its_job(visitor: Browser) -> None:
    await place(visitor, "hot:1")
    page = await visitor.see("/why?name=hot:1", **ENGLISH)
    assert "scheduled" in page
    assert "interval" in page
    job = NewJob(kind="hot.crawl", dedupe_key="hot:1", target="hot:1")
    (job_id,) = await visitor.api.store.queue.put([job])
    for name in ("hot:1", job_id):
        page = await visitor.see(f"/why?name={name}", **ENGLISH)
        assert "waits for a free worker" in page
        assert f"/queue/{job_id}" in page


async def test_what_begins_with_what_was_typed_is_suggested(visitor: Browser) -> None:
    await place(visitor, "hot:1", "hot:12", "prices:1")
    page = await visitor.see("/why?name=ho", **ENGLISH)
    assert 'role="alert"' in page
    assert ("hot:12" in page, "prices:1" in page) == (True, False)
    nothing = await visitor.see("/why?name=zzz", **ENGLISH)
    assert "No target begins so" in nothing


async def test_the_schedule_comes_a_page_at_a_time_and_as_a_file(visitor: Browser) -> None:
    names = [f"hot:{number:03d}" for number in range(A_PAGE + 1)]
    await place(visitor, *names)
    first = await visitor.see("/why")
    assert (names[-1] in first, f"after={names[-2].replace(':', '%3A')}" in first) == (False, True)
    second = await visitor.see(f"/why?after={names[-2]}")
    assert (names[-1] in second, names[0] in second) == (True, False)
    assert len((await visitor.get("/why?format=csv")).text.splitlines()) == A_PAGE + 2
    assert names[-1] in await visitor.see(f"/why?name=hot&after={names[-2]}")


async def test_a_hostile_name_stays_text(visitor: Browser) -> None:
    await place(visitor, HOSTILE)
    for path in ("/why", "/why?name=%3Cscript%3E"):
        page = await visitor.see(path)
        assert "<script>alert" not in page
        assert escape(HOSTILE) in page
