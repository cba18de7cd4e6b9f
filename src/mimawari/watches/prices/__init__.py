"""What a product is worth on Mercari: what it sold for, and the cheapest on sale."""

from datetime import timedelta

from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch
from mimawari.watches.prices import control, products, tables, tasks
from mimawari.watches.prices.cli import app as commands
from mimawari.watches.prices.tellings import TELLINGS

MINUTE = timedelta(minutes=1)

watch = Watch(
    name="prices",
    tables=tables.metadata,
    tellings=TELLINGS,
    tasks=(tasks.enqueue_crawls, tasks.crawl_list, tasks.sync_detail, control.check_site),
    controls=(control.CONTROL,),
    limits=(
        Limit(products.LIST, count=10, per=MINUTE),
        Limit(products.DETAIL, count=10, per=MINUTE),
    ),
    targets=products.list_targets,
    naming=products.NAMING,
    router="mimawari.watches.prices.api:router",
    commands=commands,
    declared="mimawari.watches.prices.declared:declared",
)
