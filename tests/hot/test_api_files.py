"""Files over the API: CSV that spreadsheets open and never run, and IPs taken from files."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.edges import csv_export
from mimawari.watches.hot.models import NewIp
from tests.app.ground import check_error, check_guards
from tests.hot.api_ground import HOUR, Hot, listed, seen


async def test_ips_open_in_a_spreadsheet_with_their_japanese_names(hot: Hot) -> None:
    await hot.add(
        NewIp(name="鬼滅の刃", keyword='a,"b"', tags=("x", "y"), weight=0.5),
        NewIp(name="=cmd|' /C calc'!A0", keyword="@x", active=False),
    )
    first, second = await hot.rows("/ips")
    assert (first["name"], first["keyword"], first["tags"]) == ("鬼滅の刃", 'a,"b"', "x|y")
    assert (first["weight"], first["active"], first["last_crawled_at"]) == ("0.5", "true", "")
    assert (first["pages_asked"], first["is_whole"]) == ("0", "false")
    assert (second["name"], second["keyword"]) == ("'=cmd|' /C calc'!A0", "'@x")
    assert [row["id"] for row in await hot.rows("/ips", limit=1)] == ["1"]
    assert [row["id"] for row in await hot.rows("/ips", after=1)] == ["2"]
    check_guards(await hot.http.get("/api/v1/ips?format=csv"))


async def test_a_file_holds_all_there_is_however_many(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    await hot.crawl(ip_id, listed("m", 1203))
    rows = await hot.rows(f"/ips/{ip_id}/items")
    assert [row["source_id"] for row in rows] == [f"m{n:04}" for n in range(1202, -1, -1)]
    assert len(await hot.rows(f"/ips/{ip_id}/items", limit=500)) == 500


async def test_nothing_is_a_file_with_its_first_line(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    for path in ("/alerts", "/leaderboard", f"/ips/{ip_id}/items", f"/ips/{ip_id}/stats/hourly"):
        assert await hot.rows(path) == []
        response = await hot.http.get(f"/api/v1{path}?format=csv")
        assert response.text.count("\r\n") == 1


async def test_every_list_comes_as_a_file(hot: Hot) -> None:
    (ip_id,) = await hot.named("名探偵コナン")
    await hot.work(ip_id)
    sold = [seen(f"m{n}", sold=True, title="+ぬい", price_yen=500) for n in range(50)]
    await hot.work(ip_id, sold)
    await hot.clock.advance(HOUR)
    (alert,) = await hot.rows("/alerts")
    assert (alert["name"], alert["kind"], alert["is_open"]) == (
        "名探偵コナン",
        "high_outflow",
        "true",
    )
    (entry,) = await hot.rows("/leaderboard", type="outflow", hours=1)
    assert (entry["rank"], entry["name"], entry["outflow"]) == ("1", "名探偵コナン", "50")
    assert (entry["previous_rank"], entry["liquidity"]) == ("", "")
    (hour,) = await hot.rows(f"/ips/{ip_id}/stats/hourly")
    assert (hour["hour_at"], hour["median_yen"]) == ("2026-01-05T12:00:00Z", "500")
    item = (await hot.rows(f"/ips/{ip_id}/items", status="sold"))[0]
    assert (item["title"], item["sold_at"]) == ("'+ぬい", "2026-01-05T12:00:00Z")


@given(st.text())
def test_no_cell_begins_a_formula(text: str) -> None:
    shown = csv_export.cell(text)
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert shown in {text, f"'{text}"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM", "\t=1", "\r=1", "\uff1d1"])
def test_what_a_spreadsheet_would_run_is_made_text(text: str) -> None:
    assert csv_export.cell(text) == f"'{text}"
    assert csv_export.cell([text, "b"]) == f"'{text}|b"


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (False, "false"), (-5, "-5"), (0.25, "0.25"), ("a=b", "a=b")]
)
def test_what_is_no_formula_stays_as_it_is(value: Any, shown: str) -> None:
    assert csv_export.cell(value) == shown


async def send(hot: Hot, body: bytes, kind: str) -> Any:
    return await hot.http.post("/api/v1/admin/import", content=body, headers={"content-type": kind})


CSV = "name,keyword,weight\n鬼滅の刃,鬼滅,2\nb,b,99\nc,,\n".encode()


@pytest.mark.parametrize("body", [CSV, b"\xef\xbb\xbf" + CSV])
async def test_good_rows_of_a_file_are_kept_and_bad_ones_told(hot: Hot, body: bytes) -> None:
    response = await send(hot, body, "text/csv; charset=utf-8")
    assert response.status_code == 200, response.text
    done = response.json()
    assert (done["added"], done["updated"]) == (2, 0)
    (bad,) = done["bad"]
    assert bad["line"] == 3
    assert "weight" in bad["message"]
    assert [ip["name"] for ip in (await hot.get("/ips"))["ips"]] == ["鬼滅の刃", "c"]


async def test_an_ip_that_is_watched_already_is_described_anew_by_a_file(hot: Hot) -> None:
    await hot.flow("a", inflow=1, outflow=1)
    await hot.clock.advance(HOUR)
    assert (await hot.get("/leaderboard"))["entries"][0]["name"] == "a"
    body = '[{"name": "進撃の巨人", "keyword": "a"}, {"name": "b"}]'.encode()
    done = (await send(hot, body, "application/json")).json()
    assert done == {"added": 1, "updated": 1, "bad": []}
    assert (await hot.get("/leaderboard"))["entries"][0]["name"] == "進撃の巨人"


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"name\na\n", "text/plain", 422, "bad_type"),
        (b"name\na\n", "application/octet-stream", 422, "bad_type"),
        (b"name\n\xff\n", "text/csv", 422, "bad_input"),
        (b"neither\nthis\n", "text/csv", 422, "bad_input"),
        (b"", "text/csv", 422, "bad_input"),
        (b"{}", "application/json", 422, "bad_input"),
        (b"[", "application/json", 400, "bad_json"),
        (b"name\n" + b"x" * 1024 * 1024, "text/csv", 413, "too_large"),
    ],
)
async def test_a_file_that_is_none_is_refused(
    calm: Hot, body: bytes, kind: str, status: int, code: str
) -> None:
    check_error(await send(calm, body, kind), status, code)
    assert (await calm.get("/ips"))["ips"] == []


async def test_an_exported_file_is_taken_back_as_it_was(hot: Hot) -> None:
    await hot.add(
        NewIp(name="鬼滅の刃", keyword='a,"b"', tags=("x", "y"), weight=0.5),
        NewIp(name="=cmd|' /C calc'!A0", keyword="@x", name_en="'quoted'", active=False),
    )
    before = (await hot.http.get("/api/v1/ips")).json()["ips"]
    exported = (await hot.http.get("/api/v1/ips?format=csv")).content
    headers = {"Content-Type": "text/csv"}
    done = await hot.http.post("/api/v1/admin/import", content=exported, headers=headers)
    assert done.json() == {"added": 0, "updated": 2, "bad": []}
    after = (await hot.http.get("/api/v1/ips")).json()["ips"]
    assert [ip | {"updated_at": ""} for ip in after] == [ip | {"updated_at": ""} for ip in before]
