"""The commands that show properties and their changes, to a person and to a program."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len

from tests.app.screen import Screen
from tests.rentals.cli_ground import GONE, HOSTILE_ID, SEASIDE, TOWER, UNSEEN


def test_properties_are_listed_newest_first_in_80_columns(filled: Screen) -> None:
    said = filled.run("ls")
    lines = said.out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    ids = [line.split()[0] for line in lines[1:] if not line.startswith(" ")]
    assert ids == [TOWER[:11], HOSTILE_ID[:11], GONE[:11], SEASIDE[:11]]
    for each in ("300,000", "+ 3,000", "80.25", "3LDK", "gone", "active", "汐見駅 7 min"):
        assert each in said.out
    assert UNSEEN[:8] not in said.out


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("--sort", "rent"), [HOSTILE_ID, GONE, SEASIDE, TOWER]),
        (("--sort", "area"), [TOWER, GONE, SEASIDE, HOSTILE_ID]),
        (("--sort", "seen"), [TOWER, HOSTILE_ID, GONE, SEASIDE]),
        (("--limit", "1"), [TOWER]),
        (("--status", "ended"), [GONE]),
        (("--min-rent", "100000"), [TOWER, SEASIDE]),
        (("--max-rent", "100000"), [GONE, SEASIDE]),
        (("--layout", "3LDK"), [TOWER]),
        (("--search", "汐見駅"), [SEASIDE]),
        (("--search", "%"), []),
    ],
)
def test_properties_are_chosen_and_put_in_order(
    filled: Screen, words: tuple[str, ...], ids: list[str]
) -> None:
    found = [one["property_id"] for one in filled.run("ls", *words, "--json").json()]
    assert found == ids


def test_programs_are_told_a_property_as_the_api_tells_it(filled: Screen) -> None:
    (found,) = filled.run("ls", "--search", "汐見駅", "--json").json()
    assert (found["rent_yen"], found["stations"][0]["walk_minutes"]) == (100_000, 7)
    assert found["images"] == ["a.jpg"]
    assert datetime.fromisoformat(found["first_seen_at"]).utcoffset() == timedelta(0)
    assert "snapshot_on" not in found


def test_a_property_is_shown_whole_by_the_beginning_of_its_id(filled: Screen) -> None:
    said = filled.run("show", SEASIDE[:11])
    assert (said.code, said.err) == (0, "")
    words = " ".join(said.out.split())
    for each in (
        f"id {SEASIDE}",
        "rent 100,000 yen + 3,000 fee",
        "layout 1K, 25.50 m²",
        "built 2019-03 (7 years old)",
        "rents █▅▁ 120,000 → 110,000 → 100,000",
        "stations 巡回線 汐見駅 7 min",
        "rent 110,000 → 100,000 ▼ its page",
        "rent 120,000 → 110,000 ▼ a list",
        "stations 巡回線 汐見駅 6 min; 北駅 bus 15 + 2 min →",
        "new first seen a list",
        "next in a daily round",
    ):
        assert each in words


def test_a_property_is_shown_whole_to_programs(filled: Screen) -> None:
    shown = filled.run("show", SEASIDE, "--json").json()
    assert [step["rent_yen"] for step in shown["rents"]] == [120_000, 110_000, 100_000]
    kinds = [change["kind"] for change in shown["changes"]]
    assert kinds == ["access", "rent", "rent", "new"]
    assert (shown["property_id"], shown["waiting"]) == (SEASIDE, None)


def test_a_rent_that_never_changed_is_not_drawn(filled: Screen) -> None:
    assert "rents" not in filled.run("show", TOWER).out


def test_times_are_said_in_the_configured_zone(filled: Screen) -> None:
    (found,) = filled.run("ls", "--status", "ended", "--json").json()
    ended_at = datetime.fromisoformat(found["ended_at"])
    for name in ("Asia/Tokyo", "America/New_York"):
        local = ended_at.astimezone(ZoneInfo(name))
        said = filled.run("show", GONE[:8], MIMAWARI_ZONE=name)
        assert f"ended       {local:%m-%d %H:%M:%S}" in said.out
        assert f"{local:%m-%d %H:%M}  status" in said.out


def test_changes_are_listed_newest_first(filled: Screen) -> None:
    found = filled.run("changes", "--json").json()
    assert [one["id"] for one in found] == sorted((one["id"] for one in found), reverse=True)
    assert {one["kind"] for one in found} == {"new", "rent", "access", "status"}
    rents = filled.run("changes", "--kind", "rent", "--json").json()
    assert [(one["before"], one["after"]) for one in rents] == [
        ("110000", "100000"),
        ("120000", "110000"),
    ]
    assert len(filled.run("changes", "--limit", "1", "--json").json()) == 1
    said = filled.run("changes", "--kind", "status")
    assert "active → ended" in said.out
    assert f" {GONE[:8]} " in said.out


@pytest.mark.parametrize("words", [("ls",), ("show", HOSTILE_ID[:8]), ("changes",)])
def test_a_name_cannot_write_to_the_terminal(filled: Screen, words: tuple[str, ...]) -> None:
    shown = filled.run(*words).out
    assert "[red]a[/]" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
