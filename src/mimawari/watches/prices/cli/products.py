"""Commands on products: add, list, show, change and remove them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mimawari import show
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput, NotFound
from mimawari.watches.prices import actions, market, products, queries
from mimawari.watches.prices.cli.cells import ProductId, alert_line, bounds_of, show_crawls, yen
from mimawari.watches.prices.market import Market
from mimawari.watches.prices.models import Product, Setting

if TYPE_CHECKING:
    from mimawari.watches.prices.schemas.requests import ProductPatch

app = typer.Typer(help="Add, list, show, change and remove products.", no_args_is_help=True)

SHOWN_CRAWLS = 5
SHOWN_ALERTS = 20

Keyword = Annotated[str | None, typer.Option(help="What to search for. Default: the name.")]
Least = Annotated[int | None, typer.Option("--min-price", help="In yen; 0 means no bound.")]
Most = Annotated[int | None, typer.Option("--max-price", help="In yen; 0 means no bound.")]
Category = Annotated[int | None, typer.Option(help="A category of the site's, by its number.")]
Exclude = Annotated[
    list[str] | None, typer.Option(help="Leave out names with this; give it again for more.")
]
Condition = Annotated[
    list[int] | None, typer.Option(help="1 (new) to 6 (bad); give it again for more.")
]
Target = Annotated[int | None, typer.Option(help="Tell when one is on sale for this or less.")]
Percent = Annotated[
    int | None, typer.Option(help="Tell when one is so many percent under the median.")
]


@app.command()
def add(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    name: str,
    *,
    keyword: Keyword = None,
    min_price: Least = None,
    max_price: Most = None,
    category: Category = None,
    exclude: Exclude = None,
    condition: Condition = None,
    target: Target = None,
    under_median: Percent = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Do not crawl it yet.")] = False,
) -> None:
    """Watch one more product, from now on."""
    given = {
        "keyword": name if keyword is None else keyword,
        "category_id": category,
        "min_price": min_price,
        "max_price": max_price,
        "exclusions": exclude,
        "item_conditions": condition,
        "target_price": target,
        "median_percent": under_median,
    }

    async def work(opened: System) -> None:
        patch = _parse(name, given)
        setting = patch.setting.to_setting(Setting(keyword="", enabled=not disabled))
        now = opened.clock.now()
        async with opened.store.edit() as tx:
            product = await products.add_product(tx, patch.name, setting, opened.settings, now)
        when = "is not crawled yet" if disabled else "is crawled as soon as a worker is free"
        show.say(f"Product {product.id}, {show.plain(product.name)}, {when}.")

    run(context, work)


def _parse(name: str | None, given: dict[str, Any]) -> "ProductPatch":
    """Check what was said by the rules of the API, and tell what is wrong by its name there."""
    # What describes requests takes long to load, and most commands do without.
    from pydantic import ValidationError  # noqa: PLC0415

    from mimawari.watches.prices.schemas.requests import ProductPatch  # noqa: PLC0415

    setting = {key: value for key, value in given.items() if value is not None}
    said = {"name": name, "setting": setting or None}
    try:
        return ProductPatch.model_validate({key: value for key, value in said.items() if value})
    except ValidationError as error:
        first = error.errors()[0]
        where = next((str(part) for part in reversed(first["loc"]) if isinstance(part, str)), "")
        raise BadInput(f"{where}: {first['msg'].removeprefix('Value error, ')}") from error


@app.command(name="set")
def change(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    product_id: ProductId,
    *,
    name: Annotated[str | None, typer.Option(help="What you call it.")] = None,
    keyword: Annotated[str | None, typer.Option(help="What to search for.")] = None,
    min_price: Least = None,
    max_price: Most = None,
    category: Category = None,
    exclude: Exclude = None,
    condition: Condition = None,
    target: Target = None,
    under_median: Percent = None,
) -> None:
    """Change what is named of a product; it is crawled at once, so that the change counts."""
    given = {
        "keyword": keyword,
        "category_id": category,
        "min_price": min_price,
        "max_price": max_price,
        "exclusions": exclude,
        "item_conditions": condition,
        "target_price": target,
        "median_percent": under_median,
    }

    async def work(opened: System) -> None:
        if name is None and all(value is None for value in given.values()):
            raise BadInput("nothing to change; `mimawari prices product set --help` says what can")
        patch = _parse(name, given)
        changed = await actions.change_product(opened, product_id, patch.change)
        show.facts(_setting_facts(changed.setting))

    run(context, work)


@app.command(name="ls")
def list_products(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at the most.")] = 50,
    after: Annotated[int, typer.Option(min=0, max=LARGEST_ID, help="Go on after this id.")] = 0,
    json: Json = False,
) -> None:
    """List the products by id, each with its median and the cheapest on sale."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await products.list_products(reader, limit, after)
            rows = [(one, await _find_market(opened, reader, one.id)) for one in found]
        if json:
            told = [{**asdict(one), "sold": there.sold, "cheapest": there.cheapest}
                    for one, there in rows]  # fmt: skip
            show.console.print_json(show.as_json(told))
            return
        _show_products(opened, rows)
        if len(found) == limit:
            show.say(f"There may be more: `mimawari prices product ls --after {found[-1].id}`")

    run(context, work)


async def _find_market(opened: System, reader: Any, product_id: int) -> Market:
    now, settings = opened.clock.now(), opened.settings
    return await market.find_market(reader, product_id, market.USUAL_DAYS, now, settings)


def _show_products(opened: System, rows: Sequence[tuple[Product, Market]]) -> None:
    columns = {
        "id": lambda row: str(row[0].id),
        "name": lambda row: show.cell(row[0].name, most=30),
        "on": lambda row: "yes" if row[0].setting.enabled else "[yellow]no[/]",
        "sold": lambda row: f"{row[1].sold.count if row[1].sold else 0:,}",
        "median": lambda row: yen(row[1].sold.median_yen if row[1].sold else None),
        "cheapest": lambda row: yen(row[1].cheapest.price if row[1].cheapest else None),
        "under": lambda row: _under(row[1]),
        "seen": lambda row: _seen(opened, row[1]),
        "crawled": lambda row: show.short(row[0].last_run_at, opened.settings.zone),
    }
    empty = "No products yet. `mimawari prices product add NAME` adds one."
    show.table(rows, columns, empty=empty)
    if rows:
        show.say(f"Sold and median: the last {market.USUAL_DAYS} days, in yen.")


def _under(there: Market) -> str:
    percent = there.cheapest.percent_under_median if there.cheapest else None
    return "–" if percent is None else f"{percent:.0f}%"


def _seen(opened: System, there: Market) -> str:
    last_seen_at = there.cheapest.last_seen_at if there.cheapest else None
    return show.short(last_seen_at, opened.settings.zone)


@app.command(name="show")
def show_product(context: typer.Context, product_id: ProductId, json: Json = False) -> None:
    """Show one product whole: its setting, its last crawls, its alerts, why it waits."""

    async def work(opened: System) -> None:
        wanted = queries.want_alerts(opened, product_id, is_open=True)
        async with opened.store.read() as reader:
            product = await queries.find_known(reader, product_id)
            runs = await queries.list_runs(reader, product_id, SHOWN_CRAWLS)
            told = await queries.list_alerts(reader, SHOWN_ALERTS, None, wanted)
            count = await queries.count_alerts(reader, wanted)
        waits = await actions.find_next(opened, product)
        if json:
            alerts = [row._asdict() for row in told]
            whole = {**asdict(product), "crawls": runs, "alerts": alerts, "next": waits}
            show.console.print_json(show.as_json(whole))
            return
        facts = {"id": str(product.id), "name": show.cell(product.name, most=200)}
        show.facts(facts | _setting_facts(product.setting) | _next_facts(opened, product, waits))
        show_crawls(opened, runs)
        for row in told:
            show.say(alert_line(row))
        if count > len(told):
            more = f"`mimawari prices alerts --product {product_id} --limit {min(count, 200)}`"
            show.say(f"{count - len(told):,} more alerts are open: {more}")

    run(context, work)


def _setting_facts(setting: Setting) -> dict[str, str]:
    facts = {
        "keyword": show.cell(setting.keyword, most=200),
        "price": bounds_of(setting),
        "enabled": "yes" if setting.enabled else "[yellow]no[/]",
    }
    if setting.category_id is not None:
        facts["category"] = str(setting.category_id)
    if setting.exclusions:
        facts["without"] = show.cell(", ".join(setting.exclusions), most=2000)
    if setting.item_conditions:
        facts["conditions"] = ", ".join(map(str, setting.item_conditions))
    if setting.target_price is not None:
        facts["target"] = f"{setting.target_price:,} yen or less is told"
    if setting.median_percent is not None:
        facts["under median"] = f"{setting.median_percent} percent or more is told"
    return facts


def _next_facts(opened: System, product: Product, waits: Any) -> dict[str, str]:
    now, zone = opened.clock.now(), opened.settings.zone
    last = {"last crawled": show.when(product.last_run_at, now, zone)}
    if waits is None:
        word = f"`mimawari prices product enable {product.id}` has it crawled"
        return {**last, "next": "not scheduled" if product.setting.enabled else word}
    at = show.when(waits.next_at, now, zone) if waits.next_at else "now"
    return {**last, "next": at, "reason": show.cell(waits.reason, most=500)}


@app.command(name="rm")
def remove(
    context: typer.Context,
    product_id: ProductId,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
) -> None:
    """Forget a product with all that was found of it."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            product = await queries.find_known(reader, product_id)
        if not yes:
            raise BadInput(
                f"this forgets {show.plain(product.name)} and all that was found of it;"
                f" to do it: mimawari prices product rm {product_id} --yes"
            )
        async with opened.store.edit() as tx:
            was_there = await products.remove_product(tx, product_id)
        if not was_there:
            raise NotFound(f"somebody else has just removed product {product_id}")
        show.say(f"Product {product_id}, {show.plain(product.name)}, is forgotten.")

    run(context, work)


@app.command()
def enable(context: typer.Context, product_id: ProductId) -> None:
    """Crawl a product, now and every hour."""
    _switch(context, product_id, on=True)


@app.command()
def disable(context: typer.Context, product_id: ProductId) -> None:
    """Crawl a product no more; what was found of it stays."""
    _switch(context, product_id, on=False)


def _switch(context: typer.Context, product_id: int, *, on: bool) -> None:
    def apply(known: Product) -> tuple[str, Setting]:
        return known.name, replace(known.setting, enabled=on)

    async def work(opened: System) -> None:
        changed = await actions.change_product(opened, product_id, apply)
        how = "is crawled as soon as a worker is free" if on else "is not crawled any more"
        show.say(f"Product {product_id}, {show.plain(changed.name)}, {how}.")

    run(context, work)
