"""The pages of the books watch: its jobs, the day's calls, books, digests and sends."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from mimawari.watches.books import jobs, mailing, quota
from mimawari.watches.books.cursors import find_cursor, save_cursor
from mimawari.watches.books.mailing import MailState
from mimawari.watches.books.models import BookJob, Cursor
from tests.books.waiting import a_volume, add_job, find_books, put_digests, settings_for
from tests.net.post_office import ANN
from tests.web.ground import Browser

HOSTILE = '<script>alert(1)</script>" onload="x'
ENGLISH = {"Accept-Language": "en"}
USUAL = {
    "name": "new-books",
    "queries": "intitle:python\r\n\r\n subject:fiction ",
    "interval": "12h",
    "max_per_run": "80",
    "mail_limit": "5",
    "print_type": "books",
    "lang_restrict": "ja",
    "recipients": "ann@example.org, bob@example.org",
    "enabled": "1",
}
PAGES = ("/books", "/books/list", "/books/mail", "/books/jobs/new")


async def list_jobs(visitor: Browser) -> list[BookJob]:
    """List the jobs that are kept."""
    async with visitor.api.store.read() as reader:
        return await jobs.list_jobs(reader)


async def exhaust(visitor: Browser, name: str = "new") -> None:
    """Let a job have found all that there is."""
    async with visitor.api.store.edit() as tx:
        job = await jobs.find_known(tx, name)
        now = visitor.api.system.clock.now()
        cursor = Cursor(start_index=61, is_exhausted=True)
        await save_cursor(tx, name, job.query_set_hash, cursor, now)
        jobs.place(tx, job, cursor, now, visitor.api.system.settings)


async def test_the_pages_of_a_new_installation_say_what_to_do(visitor: Browser) -> None:
    page = await visitor.see("/books", **ENGLISH)
    for said in ("No jobs yet", "0 of 100 on", "Nothing has run yet", "No worker is running"):
        assert said in page
    assert "No books yet" in await visitor.see("/books/list", **ENGLISH)
    page = await visitor.see("/books/mail", **ENGLISH)
    for said in ("No mail yet", "0 books wait", "MIMAWARI_SMTP_HOST"):
        assert said in page
    assert "<iframe" not in page


async def test_hostile_titles_stay_text_on_every_page_in_both_languages(visitor: Browser) -> None:
    store = visitor.api.store
    await add_job(store, queries=(HOSTILE,))
    volume = replace(a_volume(1), title=HOSTILE, authors=(HOSTILE,), info_link="javascript:x")
    await find_books(store, "new", volume)
    for path in PAGES:
        for language in ("ja", "en"):
            page = await visitor.see(path, **{"Accept-Language": language})
            assert f'<html lang="{language}"' in page
            assert "&lt;script&gt;alert(1)" in page
            assert "<script>alert" not in page
            assert "javascript:" not in page
            assert not re.search(r"<[^>]*\s(?:style|on[a-z]+)=", page)


async def test_a_job_is_added_and_changed_as_it_was_typed(visitor: Browser) -> None:
    added = await visitor.send("/books/jobs", **USUAL)
    assert (added.status_code, added.headers["location"]) == (303, "/books")
    (job,) = await list_jobs(visitor)
    assert job.queries == ("intitle:python", "subject:fiction")
    assert job.recipients == ("ann@example.org", "bob@example.org")
    assert (job.every_for, job.max_per_run, job.mail_limit) == (timedelta(hours=12), 80, 5)
    assert (job.print_type, job.lang_restrict, job.enabled) == ("books", "ja", True)
    page = await visitor.see("/books/jobs/new-books")
    for shown in (
        'value="12h"',
        "intitle:python\nsubject:fiction",
        '<option value="books" selected',
    ):
        assert shown in page
    changed = await visitor.send("/books/jobs/new-books", **{**USUAL, "interval": "2d"})
    assert changed.headers["location"] == "/books/jobs/new-books"
    (job,) = await list_jobs(visitor)
    assert job.every_for == timedelta(days=2)


async def test_a_job_may_have_a_japanese_name(visitor: Browser) -> None:
    await visitor.send("/books/jobs", **{**USUAL, "name": "新刊"})
    link = re.search(r'href="(/books/jobs/[^"#]+)"', await visitor.see("/books"))
    assert link is not None
    assert "<h1>新刊</h1>" in await visitor.see(link[1])
    changed = await visitor.send(link[1], **{**USUAL, "max_per_run": "3"})
    assert changed.headers["location"] == link[1]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"name": "no spaces"}, "name: give 1 to 64"),
        ({"queries": " \r\n"}, "queries: give 1 to"),
        ({"interval": "soon"}, "is no duration"),
        ({"interval": "1s"}, "interval: give 1m to 365d"),
        (
            {"max_per_run": "many"},
            "Books with an ISBN a run at the most (1 to 1000): give a whole number",
        ),
        ({"mail_limit": "201"}, "mail_limit: give 0 to 200"),
        ({"recipients": "ann"}, "recipients: give at most"),
    ],
)
async def test_a_job_that_cannot_be_is_shown_again_with_what_is_wrong(
    visitor: Browser, typed: dict[str, str], said: str
) -> None:
    visitor.speak("en")
    await add_job(visitor.api.store, "kept")
    refused = await visitor.send("/books/jobs", **{**USUAL, **typed})
    assert refused.status_code == 422
    assert said in refused.text
    assert next(iter(typed.values())).strip() in refused.text
    assert [job.name for job in await list_jobs(visitor)] == ["kept"]
    if "name" not in typed:
        refused = await visitor.send("/books/jobs/kept", **{**USUAL, **typed})
        assert refused.status_code == 422
        assert said in refused.text


async def test_a_name_is_taken_once_and_an_unknown_one_is_told(visitor: Browser) -> None:
    visitor.speak("en")
    await visitor.send("/books/jobs", **USUAL)
    assert "is there already" in (await visitor.send("/books/jobs", **USUAL)).text
    assert (await visitor.get("/books/jobs/other")).status_code == 404
    for deed in ("", "/run", "/reset", "/remove", "/switch"):
        assert (await visitor.send(f"/books/jobs/other{deed}", **USUAL)).status_code == 404


async def test_a_job_is_switched_run_and_removed(visitor: Browser) -> None:
    store = visitor.api.store
    await add_job(store)
    assert (await visitor.send("/books/jobs/new/run")).status_code == 303
    assert await store.queue.find_live(jobs.member_of("new")) is not None
    await visitor.send("/books/jobs/new/switch", enabled="0")
    assert not (await list_jobs(visitor))[0].enabled
    assert "/books/jobs/new/run" not in await visitor.see("/books")
    refused = await visitor.send("/books/jobs/new/run")
    assert refused.status_code == 422
    await visitor.send("/books/jobs/new/switch", enabled="1")
    assert (await list_jobs(visitor))[0].enabled
    assert (await visitor.send("/books/jobs/new/remove")).status_code == 303
    assert not await list_jobs(visitor)


async def test_an_exhausted_job_says_so_and_begins_anew_when_asked(visitor: Browser) -> None:
    await add_job(visitor.api.store)
    await exhaust(visitor)
    page = await visitor.see("/books", **ENGLISH)
    assert "exhausted" in page
    assert "Read to the end at 61" in page
    assert '<meter min="0" max="1" value="1.000" aria-label="How much is read">' in page
    assert re.search(r'action="/books/jobs/new/reset" data-ask="[^"]*first page', page)
    assert (await visitor.send("/books/jobs/new/run")).status_code == 422
    assert (await visitor.send("/books/jobs/new/reset")).status_code == 303
    async with visitor.api.store.read() as reader:
        (job,) = await jobs.list_jobs(reader)
        assert await find_cursor(reader, "new", job.query_set_hash) is None
    assert "/books/jobs/new/reset" not in await visitor.see("/books")


async def test_no_form_is_taken_without_its_token(visitor: Browser) -> None:
    await add_job(visitor.api.store)
    for deed in ("/new/run", "/new/reset", "/new/remove", "/new/switch", "/new", ""):
        refused = await visitor.http.post(f"/books/jobs{deed}", data=USUAL)
        assert refused.status_code == 422
    (job,) = await list_jobs(visitor)
    assert (job.name, job.enabled, job.max_per_run) == ("new", True, 40)


async def test_the_cursor_stands_against_what_the_site_said_and_its_drift(visitor: Browser) -> None:
    store = visitor.api.store
    await add_job(store)
    await find_books(store, "new", *range(1, 4), total=90)
    await find_books(store, "new", *range(4, 7), total=97)
    page = await visitor.see("/books", **ENGLISH)
    assert "Read up to 6 · the site says 97" in page
    assert "+7 since the run before" in page
    assert 'value="0.062"' in page
    assert "Stopped: quota limit reached" in await visitor.see("/books/jobs/new")


async def test_the_days_calls_are_counted_with_those_on_their_way(visitor: Browser) -> None:
    system = visitor.api.system
    now = system.clock.now()
    for _ in range(2):
        call = await quota.reserve(system.store, system.settings, now)
    assert call is not None
    async with system.store.edit() as tx:
        await quota.settle(tx, call)
    page = await visitor.see("/books", **ENGLISH)
    assert f"2 of 100 on {call.day} (Asia/Tokyo)" in page
    assert "98 are left" in page


async def test_books_are_paged_chosen_by_job_and_saved_as_a_file(visitor: Browser) -> None:
    store = visitor.api.store
    for name, numbers in (("new", range(1, 61)), ("other", range(61, 64))):
        await add_job(store, name)
        await find_books(store, name, *numbers)
    await find_books(store, "other", replace(a_volume(99), title="=1+1"))
    first, rest = await visitor.see("/books/list"), await visitor.see("/books/list?offset=50")
    titles = [re.findall(r"<td>(Book \d+|=1\+1)<", page) for page in (first, rest)]
    assert [len(some) for some in titles] == [50, 14]
    assert len({*titles[0], *titles[1]}) == 64
    page = await visitor.see("/books/list?job=other&offset=0", **ENGLISH)
    assert "4 books" in page
    file = await visitor.get("/books/list?job=other&format=csv")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    lines = file.text.strip().splitlines()
    assert len(lines) == 5
    assert "'=1+1" in file.text
    assert len((await visitor.get("/books/list?format=csv")).text.strip().splitlines()) == 65
    assert (await visitor.get("/books/list?job=nobody")).status_code == 404


async def test_a_digest_is_shown_shut_off_from_everything(visitor: Browser) -> None:
    store = visitor.api.store
    await add_job(store, queries=("q",))
    picture = "https://books.google.com/cover.png"
    volume = replace(a_volume(1), title=HOSTILE, thumbnail=picture)
    await find_books(store, "new", volume)
    page = await visitor.see("/books/mail", **ENGLISH)
    assert '<iframe class="digest" src="/books/mail/preview/0" sandbox=""' in page
    assert "1 books wait" in page
    shown = await visitor.get("/books/mail/preview/0")
    policy = shown.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert policy[0].endswith("frame-ancestors 'self'; sandbox")
    assert shown.headers.get_list("x-frame-options") == ["SAMEORIGIN"]
    assert "&lt;script&gt;" in shown.text
    assert "<script" not in shown.text
    assert picture not in shown.text
    assert (await visitor.get("/books/mail/preview/1")).status_code == 404


async def test_sends_are_listed_with_their_state_attempts_and_reason(visitor: Browser) -> None:
    store = visitor.api.store
    await add_job(store)
    await find_books(store, "new", 1, 2)
    assert await put_digests(store, settings_for()) == [2]
    async with store.read() as reader:
        (mail,) = await mailing.list_mails(reader, 1)
    failed = replace(mail, state=MailState.FAILED, attempts=3, reason=HOSTILE)
    async with store.edit() as tx:
        await mailing.mark(tx, failed, visitor.api.system.clock.now())
    page = await visitor.see("/books/mail", **ENGLISH)
    row = page.split("<tbody>")[1].split("</tr>")[0]
    for said in (ANN, ">failed<", '<td class="num">3</td>', "&lt;script&gt;"):
        assert said in row


async def test_many_jobs_and_runs_are_paged(visitor: Browser) -> None:
    store = visitor.api.store
    for number in range(21):
        await add_job(store, f"job-{number:02}")
        await find_books(store, "job-00", number)
    page = await visitor.see("/books")
    assert page.count('id="job-') == 20
    assert 'id="job-1"' in await visitor.see("/books?offset=20")
    page = await visitor.see("/books/jobs/job-00", **ENGLISH)
    assert "1–20 of 21" in page
    assert page.split("<tbody>")[1].count("<tr>") == 20
