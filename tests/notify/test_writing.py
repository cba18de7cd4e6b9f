"""Messages: a title, a line an event, a link; bounded, clean, and in two languages."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mimawari.kernel.telling import Telling
from mimawari.kernel.watch import Watches
from mimawari.net.notify import Message
from mimawari.notify import rules
from mimawari.notify.messages import MOST_LETTERS, MOST_LINES, write_message
from mimawari.notify.models import How, Setting, Told
from mimawari.settings import DEFAULTS
from mimawari.watches import INSTALLED
from tests.notify.scene import FELL, GONE

NOON = datetime(2026, 3, 8, 3, tzinfo=UTC)
PUBLIC = DEFAULTS.model_copy(update={"public_url": "https://watch.example"})
KNOWN: dict[str, Telling] = {FELL.kind: FELL, GONE.kind: GONE}
MINUTE = timedelta(minutes=1)


def told(name: str, kind: str = FELL.kind, after: int = 0) -> Told:
    body = {"name": name, "yen": 130_000, "id": 7}
    return Told(
        id=f"{after:04}", kind=kind, watches=("rooms",), body=body, at=NOON + after * MINUTE
    )


def write(*some: Told, language: str = "ja", public: bool = False) -> Message:
    return write_message("s", language, some, KNOWN, PUBLIC if public else DEFAULTS)


def test_one_event_is_a_line_under_the_name_of_its_kind() -> None:
    message = write(told("メゾン見回"))
    assert (message.title, message.body) == ("見回り: 値下げ", "メゾン見回: 130,000ja")


def test_a_link_leads_to_the_page_where_an_address_is_set() -> None:
    message = write(told("メゾン見回"), language="en", public=True)
    assert message.title == "Mimawari: rent falls"
    assert message.body == "メゾン見回: 130,000en https://watch.example/rooms/7"


def test_several_are_lines_with_their_times_in_the_zone_of_the_app_the_earliest_first() -> None:
    message = write(told("b", GONE.kind, after=1), told("a"))
    assert message.title == "見回り: 2件のお知らせ"
    assert message.body == "・03-08 12:00 a: 130,000ja\n・03-08 12:01 b gone"
    assert write(told("a"), told("b", after=1)).title == "見回り: 値下げ (2)"


@pytest.mark.parametrize(
    "hostile", ["a\nb", "a\x00b", "a\x1b[31mb", "a\u2028b", "\ud800", "x" * 5000, "a\r\nSubject: b"]
)
def test_whatever_a_name_holds_it_stays_one_short_line(hostile: str) -> None:
    body = write(told(hostile)).body
    assert len(body.splitlines()) == 1
    assert len(body) <= 300
    assert body.encode()
    assert not any(ord(letter) < 32 for letter in body)


@pytest.mark.parametrize("call", ["@everyone", "@here", "<!channel>", "<@U123>", "@ROOM"])
def test_a_name_cannot_call_everybody(call: str) -> None:
    assert call not in write(told(f"cheap {call} now")).body


@pytest.mark.parametrize(
    "link",
    ["[bank](https://evil.example)", "<https://evil.example|bank>", "<mailto:a@b.example|bank>"],
)
def test_a_name_cannot_make_a_link_that_shows_another_text(link: str) -> None:
    body = write(told(f"cheap {link} now")).body
    assert link not in body
    assert body.replace("\u200b", "").startswith(f"cheap {link} now")


@pytest.mark.parametrize("mark", ["\u202e", "\u2066", "\u200f"])
def test_a_name_cannot_turn_the_rest_of_its_line(mark: str) -> None:
    assert mark not in write(told(f"cheap {mark}won"), public=True).body


def test_a_plain_mail_address_stays_as_it_is() -> None:
    assert "ann@example.org" in write(told("ann@example.org")).body


def test_a_long_message_is_bounded_and_says_how_much_is_left_out() -> None:
    many = [told("x" * 200, after=number) for number in range(300)]
    message = write(*many, public=True)
    assert len(message.body) <= MOST_LETTERS + 100
    lines = message.body.splitlines()
    assert len(lines) <= MOST_LINES + 1
    left = 300 - (len(lines) - 1)
    assert lines[-1] == f"ほか{left}件 https://watch.example/notify/sends/s"


def test_an_event_of_an_older_release_is_told_by_its_name() -> None:
    bare = Told(id="1", kind=FELL.kind, watches=(), body={}, at=NOON)
    assert write(bare, public=True).body == "値下げ"
    unknown = Told(id="1", kind="old.kind", watches=(), body={}, at=NOON)
    assert (write(unknown).title, write(unknown).body) == ("見回り: old.kind", "old.kind")


def test_a_test_without_any_event_says_so_in_both_languages() -> None:
    assert write().title == "見回り: 試験"
    assert write(language="en").title == "Mimawari: test"
    assert write().body != write(language="en").body


def test_every_kind_has_a_name_in_both_languages_and_belongs_to_its_watch() -> None:
    for watch in INSTALLED:
        for telling in watch.tellings:
            assert telling.ja != telling.en
            assert all((telling.ja, telling.en))
            assert telling.watch in {watch.name, "incident"}
    assert len(Watches(INSTALLED).tellings) == 28


@pytest.mark.parametrize(
    ("zone", "now", "at", "expected"),
    [
        ("Asia/Tokyo", "2026-03-08T00:00+00:00", "08:00", "2026-03-08T23:00+00:00"),
        ("Asia/Tokyo", "2026-03-08T22:59+00:00", "08:00", "2026-03-08T23:00+00:00"),
        ("Asia/Tokyo", "2026-03-08T23:00+00:00", "08:00", "2026-03-09T23:00+00:00"),
        # The night in which 02:30 is left out, and the one that has it twice.
        ("America/New_York", "2026-03-08T05:00+00:00", "02:30", "2026-03-08T07:30+00:00"),
        ("America/New_York", "2026-11-01T04:00+00:00", "01:30", "2026-11-01T05:30+00:00"),
        ("America/New_York", "2026-11-01T05:30+00:00", "01:30", "2026-11-02T06:30+00:00"),
    ],
)
def test_a_daily_digest_is_due_at_its_time_of_day(
    zone: str, now: str, at: str, expected: str
) -> None:
    setting = Setting(url="env:X", how=How.DAILY, daily_at=at)
    found = rules.due_at(setting, datetime.fromisoformat(now), ZoneInfo(zone))
    assert found == datetime.fromisoformat(expected)
