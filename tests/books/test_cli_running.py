"""The command that runs what is due, on a simulated site and with a real mail server."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.google_books.site import Books
from mimawari.sim.world import World
from tests.app.screen import Screen
from tests.app.terminal import Said
from tests.faults.world import running_site
from tests.net.post_office import ANN, SENDER, Office, open_office

SITE_STARTS = datetime(2026, 1, 2, tzinfo=UTC)
"""So soon after the site's beginning that there is little to catch up with."""
TOKYO = ZoneInfo("Asia/Tokyo")
DAY = timedelta(days=1)
MANY, NONE = "subject:Computers", "intitle:nothing-is-called-so"
HASTE = {"MIMAWARI_TIME_SCALE": "10"}
"""Makes time go faster, for there is a pause after each failure."""
USED_UP = {"error": {"code": 429, "message": "Quota exceeded for limit 'Queries per day'"}}
REFUSED = {"error": {"code": 403, "message": "API key not valid. Please pass a valid API key."}}


@dataclass(frozen=True, slots=True)
class Town:
    """The site and the mail server that all tests share."""

    world: World
    address: str
    office: Office


@dataclass(frozen=True, slots=True)
class Desk:
    """A screen whose key the site has not seen before, beside the mail server."""

    town: Town
    screen: Screen

    async def run(self, *words: str, **more: str) -> Said:
        """Run a command of the watch while site and mail server answer."""
        return await asyncio.to_thread(self.screen.run, *words, **more)

    async def add(self, name: str, query: str, *words: str) -> None:
        """Add a job."""
        added = await self.run("job", "add", name, "--query", query, *words)
        assert added.code == 0, added

    async def find(self, name: str) -> Any:
        """Tell how a job stands, for programs."""
        listed = json.loads((await self.run("job", "ls", "--json")).out)
        (found,) = [one for one in listed if one["job"]["name"] == name]
        return found

    async def complaint(self, name: str, **more: str) -> str:
        """Tell what the doctor advises about one thing, which is not as it should be."""
        said = await self.run("doctor", "--json", **more)
        (found,) = [one for one in json.loads(said.out) if one["name"] == name]
        assert (said.code, found["ok"]) == (1, False)
        return str(found["advice"])

    def cursors(self) -> list[Any]:
        """Read the table of cursors as an operator does, with SQL of his own."""
        with closing(sqlite3.connect(self.screen.data.parent / "app.db")) as opened:
            return opened.execute("SELECT * FROM collect_cursor").fetchall()

    def mails(self) -> list[EmailMessage]:
        """Read what the mail server took."""
        return [
            message_from_bytes(one.content, policy=policy.default) for one in self.town.office.mails
        ]


@pytest.fixture(scope="module")
async def town() -> AsyncIterator[Town]:
    """Serve a site whose time stands still, and a mail server."""
    still = VirtualClock(SITE_STARTS)
    world = World(still, (Books(still, 1, spells=False),), 1)
    async with running_site(world) as address, open_office() as office:
        yield Town(world, address, office)


@pytest.fixture
def desk(town: Town, tmp_path: Path) -> Desk:
    """A screen on an empty database."""
    town.office.mails.clear()
    town.office.refused.clear()
    town.world.orders.clear()
    variables = {
        "MIMAWARI_DATABASE_URL": f"sqlite:///{tmp_path}/app.db",
        "MIMAWARI_GOOGLE_BOOKS_URL": town.address,
        "MIMAWARI_ALLOW_HOSTS": "127.0.0.1",
        "MIMAWARI_BOOKS_KEY": tmp_path.name,
        "MIMAWARI_SMTP_HOST": "127.0.0.1",
        "MIMAWARI_SMTP_PORT": str(town.office.port),
        "MIMAWARI_SMTP_SECURITY": "none",
        "MIMAWARI_MAIL_FROM": SENDER,
        "MIMAWARI_MAIL_TO": ANN,
    }
    return Desk(town, Screen(tmp_path / "data", "books", variables))


def line_of(said: Said, words: str) -> str:
    """Find the one line on standard error that begins with some words."""
    (line,) = [line for line in said.err.splitlines() if line.startswith(words)]
    return line


async def test_the_manual_verification_goes_as_it_is_written(desk: Desk) -> None:
    name = "consultant-books"
    await desk.add(name, MANY, "--max-per-run", "50")
    first = await desk.run("run-due", "--dry-run")
    assert first.code == 0
    page, stop = f"[google-books][{name}] Page ", f"[google-books][{name}] Stopped: "
    assert re.fullmatch(
        r"startIndex=0, returned=40, totalItems=[1-9][0-9]*",
        line_of(first, f"{page}1: ").removeprefix(f"{page}1: "),
    )
    assert line_of(first, f"{page}2: ").startswith(f"{page}2: startIndex=40, returned=")
    [(kept_name, digits, start_index, is_exhausted, stamp)] = desk.cursors()
    assert (kept_name, is_exhausted) == (name, 0)
    assert line_of(first, stop) == (
        f"{stop}max_per_run reached (50/50), next startIndex={start_index}"
    )
    assert re.fullmatch("[0-9a-f]{64}", digits)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", stamp)

    second = await desk.run("run-due", "--dry-run")
    assert line_of(second, f"{page}1: ").startswith(f"{page}1: startIndex={start_index}, ")
    [(_, same_digits, further, _, _)] = desk.cursors()
    assert (same_digits, further > start_index) == (digits, True)

    reset = await desk.run("job", "cursor", "reset", name, "--yes")
    assert (reset.code, reset.out) == (0, f"Reset 1 cursor(s) for job: {name}\n")
    assert desk.cursors() == []


async def test_a_dry_run_mails_nothing_and_leaves_the_job_due(desk: Desk) -> None:
    await desk.add("computers", MANY, "--max-per-run", "3")
    dry = await desk.run("run-due", "--dry-run")
    assert (dry.code, "Digest" in dry.out, desk.mails()) == (0, False, [])
    assert (await desk.find("computers"))["job"]["last_run_at"] is None
    status = json.loads((await desk.run("mail", "status", "--json")).out)
    assert (status["mails"], status["waiting"]) == ([], 3)
    earnest = await desk.run("run-due")
    assert (earnest.code, "Digest of 6 books, sent." in earnest.out) == (0, True)
    assert len(desk.mails()) == 1


async def test_what_is_new_is_mailed_once_and_said_to_be_sent(desk: Desk) -> None:
    await desk.add("computers", MANY, "--max-per-run", "5", "--mail-limit", "3")
    said = await desk.run("run-due")
    assert (said.code, said.out.splitlines()[-1]) == (0, "Digest of 3 books, sent.")
    [mail] = desk.mails()
    assert (mail["To"], mail["From"].addresses[0].addr_spec) == (ANN, SENDER)
    assert mail["Subject"].startswith("新着図書 3冊")
    [kept] = json.loads((await desk.run("mail", "status", "--json")).out)["mails"]
    assert (kept["state"], kept["books"], kept["attempts"]) == ("sent", 3, 1)

    again = await desk.run("run-due")
    assert (again.code, again.err) == (0, "")
    assert again.out == "No job is due. `mimawari books job ls` tells when one is.\n"
    assert len(desk.mails()) == 1


async def test_with_force_a_job_runs_that_is_not_due_and_goes_on(desk: Desk) -> None:
    await desk.add("computers", MANY, "--max-per-run", "2", "--mail-limit", "0")
    await desk.run("run-due")
    [(_, _, start_index, _, _)] = desk.cursors()
    forced = await desk.run("run-due", "--force")
    page = "[google-books][computers] Page 1: "
    assert line_of(forced, page).startswith(f"{page}startIndex={start_index}, returned=")
    assert (forced.code, "Digest" in forced.out, desk.mails()) == (0, False, [])


async def test_an_exhausted_job_warns_and_is_skipped_from_then_on(desk: Desk) -> None:
    await desk.add("nothing", NONE)
    ran = await desk.run("run-due", "--json")
    [told] = json.loads(ran.out)["runs"]
    assert (ran.code, told["run"]["stop_reason"]) == (0, "exhausted")
    digits = told["run"]["query_set_hash"][:16]
    assert line_of(ran, "[WARN]") == (
        "[WARN][google-books][nothing] Exhausted: startIndex=0 >= totalItems=0"
        f" (query_set_hash={digits}...)"
    )
    for words in (("run-due",), ("run-due", "--force"), ("run-due", "--dry-run")):
        skipped = await desk.run(*words)
        assert skipped.err == f"[WARN][nothing] Skipped: exhausted (query_set_hash={digits})\n"
        assert (skipped.code, skipped.out.startswith("No job is due.")) == (0, True)
    assert (await desk.find("nothing"))["next"] is None
    assert "exhausted" in (await desk.run("job", "ls")).out


async def test_when_the_days_calls_are_used_up_the_job_goes_on_tomorrow(desk: Desk) -> None:
    await desk.add("computers", MANY, "--max-per-run", "100")
    said = await desk.run("run-due", MIMAWARI_BOOKS_CALLS="1")
    assert said.code == 0
    assert line_of(said, "[google-books][computers] Stopped") == (
        "[google-books][computers] Stopped: quota limit reached, next startIndex=40"
    )
    found = await desk.find("computers")
    assert found["last_run"]["stop_reason"] == "quota"
    assert found["cursor"]["is_exhausted"] is False
    due_at, ended_at = (
        datetime.fromisoformat(text).astimezone(TOKYO)
        for text in (found["next"]["next_at"], found["last_run"]["ended_at"])
    )
    assert due_at.date() == ended_at.date() + DAY
    assert due_at.strftime("%H:%M:%S") == "00:00:00"


async def test_a_spell_of_failures_is_gone_through_and_nothing_is_left_out(desk: Desk) -> None:
    desk.town.world.orders.add({"part": "books", "do": "status", "code": 503, "times": 2})
    await desk.add("computers", MANY, "--max-per-run", "5")
    said = await desk.run("run-due", "--dry-run", "--json", **HASTE)
    assert said.code == 0
    [told] = json.loads(said.out)["runs"]
    assert told["run"]["stop_reason"] == "max_per_run"
    assert "Page 1: startIndex=0, returned=5" in said.err
    doctor = json.loads((await desk.run("doctor", "--json", **HASTE)).out)
    [quota] = [one for one in doctor if one["name"] == "quota"]
    assert quota["found"].startswith(f"{told['run']['pages'] + 2} of 100 calls today")


async def test_a_site_that_keeps_failing_is_waited_for_no_longer_than_a_minute(desk: Desk) -> None:
    orders = desk.town.world.orders
    added = orders.add({"part": "books", "do": "status", "code": 503, "times": 50})
    await desk.add("computers", MANY)
    said = await desk.run("run-due", MIMAWARI_TIME_SCALE="60")
    orders.remove(added["id"])
    assert "computers goes on later" in said.out
    with closing(sqlite3.connect(desk.screen.data.parent / "app.db")) as opened:
        [(attempts,)] = opened.execute("SELECT attempts FROM jobs WHERE kind LIKE 'books.%'")
    # The pauses after its failures are 2 s, 10 s, a minute, 5 minutes and 15 minutes.
    assert attempts <= 4


async def test_of_a_key_that_is_refused_it_is_said_what_to_do_and_when_it_goes_on(
    desk: Desk,
) -> None:
    order = {"do": "status", "code": 403, "type": "application/json", "body": json.dumps(REFUSED)}
    desk.town.world.orders.add({"part": "books", **order})
    await desk.add("computers", MANY)
    said = await desk.run("run-due", **HASTE)
    assert said.code == 0
    assert "computers goes on later: the API key is refused: check it" in said.out
    assert desk.cursors() == []
    assert "by itself" in (await desk.complaint("site", **HASTE))


async def test_of_a_site_that_has_no_calls_left_it_is_said_until_when_in_the_usual_zone(
    desk: Desk,
) -> None:
    order = {"do": "status", "code": 429, "type": "application/json", "body": json.dumps(USED_UP)}
    desk.town.world.orders.add({"part": "books", **order})
    await desk.add("computers", MANY)
    await desk.run("run-due")
    zone = ZoneInfo("Pacific/Kiritimati")
    said = await desk.run("run-due", "--force", MIMAWARI_ZONE=zone.key)
    until = datetime.fromisoformat((await desk.find("computers"))["next"]["next_at"])
    shown = f"{until.astimezone(zone):%m-%d %H:%M}"
    assert f"[computers] Waiting until {shown}: the day's calls are used up" in said.err
    assert "no worker is running" not in said.err + said.out
    assert "by itself" in (await desk.complaint("site"))


async def test_of_a_digest_that_nobody_takes_it_is_said_why_and_its_books_wait(desk: Desk) -> None:
    desk.town.office.refused[ANN] = "550 nobody of that name"
    await desk.add("computers", MANY, "--max-per-run", "5", "--mail-limit", "3")
    said = await desk.run("run-due")
    assert said.code == 1
    assert "Digest of 3 books, failed: " in said.out
    assert "nobody of that name" in said.out
    status = json.loads((await desk.run("mail", "status", "--json")).out)
    assert (status["mails"][0]["state"], status["waiting"]) == ("failed", 5)
    assert "`mimawari books mail status` tells why" in (await desk.complaint("digests"))
