"""IPs come from files: the same however they are written, and added or described anew."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import franchises, import_file, queries
from mimawari.watches.hot.import_file import Imported, Parsed, parse
from mimawari.watches.hot.models import Ip, NewIp
from tests.conftest import Databases

WHOLE = NewIp(
    name="星くず郵便", keyword="星くず", name_en="Post", weight=2.5, active=False, tags=("a", "b c")
)
FIELDS = {
    "name": "星くず郵便",
    "keyword": "星くず",
    "name_en": "Post",
    "weight": 2.5,
    "active": False,
    "tags": ["a", "b c"],
}
HEADER = "name;keyword;name_en;weight;active;tags"
QUOTED = (
    '\ufeff"name","keyword","name_en","weight","active","tags"\r\n'
    '"星くず郵便","星くず","Post","2.5","0","a;b c"\r\n'
)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (json.dumps([FIELDS]), "json"),
        (json.dumps({"ips": [FIELDS]}, ensure_ascii=False, indent=4), "json"),
        ("\ufeff \r\n" + json.dumps([FIELDS]) + "\n\n", "json"),
        (json.dumps([{**FIELDS, "tags": " a ;b c;; a"}]), "json"),
        (json.dumps([{**FIELDS, "tags": "a|b c"}]), "json"),
        ("name,keyword,name_en,weight,active,tags\n星くず郵便,星くず,Post,2.5,false,a;b c", "csv"),
        ("tags,active,weight,name_en,keyword,name\na|b c,no,2.5,Post,星くず,星くず郵便", "csv"),
        (QUOTED, "csv"),
        (f"{HEADER}\n星くず郵便;星くず;Post;2.5;NO;a|b c\n", "csv"),
        (f"{HEADER}\n 星くず郵便 ;星くず;Post;2.5;False;a|b c".replace(";", "\t"), "csv"),
        (f"\n\n {HEADER.upper()} \r星くず郵便;星くず;Post;02.50;false;a|b c", "csv"),
    ],
)
def test_an_ip_is_the_same_however_it_is_written(text: str, form: str) -> None:
    parsed = parse(text, form)
    assert (parsed.good, parsed.bad) == ((WHOLE,), ())


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('[{"name": " a "}]', "json"),
        ('[{"name": "a", "keyword": "  ", "name_en": "", "tags": []}]', "json"),
        ("name\na", "csv"),
        ("name,keyword,name_en,weight,active,tags\na,,,,,", "csv"),
        ("name,keyword,name_en,weight,active,tags\na", "csv"),
        ("name;weight\n;\n\n   \na;\n;;", "csv"),
    ],
)
def test_what_is_left_out_has_its_default(text: str, form: str) -> None:
    assert parse(text, form).good == (NewIp(name="a", keyword="a"),)


@pytest.mark.parametrize("text", ["[]", " [ ] ", '{"ips":[]}', '{ "ips" : [ ] } '])
def test_an_empty_list_holds_nothing(text: str) -> None:
    assert parse(text, "json") == Parsed(good=(), given=(), bad=())


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "nonsense",
        "{}",
        "null",
        "1",
        '"[]"',
        '{"name": "a"}',
        '{"name": "a"}\n{"name": "b"}',
        '{"ips": {}}',
        '{"ips": null}',
        '{"list": []}',
        '{"ips": []',
        '{"ips": [], "more": 1}',
        "[]]",
        "[] []",
        '[{"name": "a"}] and more',
        '{"ips": [{"name": "a"}]}}',
        "name,keyword\na,b",
    ],
)
def test_text_that_is_no_list_of_ips_is_refused_whole(text: str) -> None:
    with pytest.raises(BadInput, match=r"list"):
        parse(text, "json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        ",,,\n;;;",
        "nonsense",
        "keyword\na",
        "name,name\na,b",
        "name,colour\na,red",
        "name,,weight\na,b,1",
        '[{"name": "a"}]',
        '"name\na',
        '"name"x,keyword\na,b',
        "\x00",
    ],
)
def test_a_file_whose_first_line_names_no_columns_is_refused_whole(text: str) -> None:
    with pytest.raises(BadInput, match=r"line"):
        parse(text, "csv")


@pytest.mark.parametrize("form", ["", "xml", "JSON", "\x1b[31m"])
def test_a_form_nobody_knows_is_refused(form: str) -> None:
    with pytest.raises(BadInput, match="json or csv"):
        parse("[]", form)


@pytest.fixture
async def kept(databases: Databases, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """An empty store on SQLite, with all its tables."""
    store = SqlStore(await databases.ready(), clock)
    yield store
    await store.close()


async def take(store: SqlStore, text: str, form: str = "csv") -> Imported:
    now = store.database.clock.now()
    async with store.edit() as tx:
        return await import_file.save(tx, parse(text, form), DEFAULTS, now)


async def listed(store: SqlStore) -> list[Ip]:
    async with store.read() as reader:
        return await queries.list_ips(reader, 100)


async def test_good_rows_are_added_and_their_first_crawls_spread_out(kept: SqlStore) -> None:
    done = await take(kept, "name,active\na,1\nb,1\nc,0\nd,1\ne,what\nf,1")
    assert (done.added, done.updated, [row.line for row in done.bad]) == (5, 0, [6])
    found = await listed(kept)
    assert [ip.name for ip in found] == ["a", "b", "c", "d", "f"]
    start = kept.database.clock.now()
    entries = [await kept.schedule.find(franchises.member_of(ip.id)) for ip in found]
    waits = [entry and entry.next_at - start for entry in entries]
    half = timedelta(minutes=30)
    assert waits == [timedelta(0), half, None, half * 2, half * 3]


async def test_a_keyword_that_is_watched_is_described_anew_as_far_as_the_file_says(
    kept: SqlStore,
) -> None:
    await take(kept, "name,keyword,weight\nold,k,2\nother,o,1")
    done = await take(kept, '[{"name": "new", "keyword": "k", "tags": "x"}, {"name": "c"}]', "json")
    assert done == Imported(added=1, updated=1, bad=())
    found = {ip.keyword: ip for ip in await listed(kept)}
    assert [(ip.id, ip.name) for ip in found.values()] == [(1, "new"), (2, "other"), (3, "c")]
    assert (found["k"].tags, found["k"].weight) == (("x",), 2.0)


async def test_the_same_file_twice_changes_nothing_more(kept: SqlStore) -> None:
    text = "name,weight,tags\na,2,x;y\nb,1,"
    await take(kept, text)
    before = await listed(kept)
    assert await take(kept, text) == Imported(added=0, updated=2, bad=())
    assert await listed(kept) == before


async def test_a_file_without_good_rows_changes_nothing(kept: SqlStore) -> None:
    done = await take(kept, "[1, 2]", "json")
    assert (done.added, done.updated, len(done.bad)) == (0, 0, 2)
    assert (await listed(kept), await kept.schedule.count()) == ([], 0)
