"""What a product is worth on Mercari: what it sold for, and the cheapest on sale."""

from datetime import timedelta

from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch
from mimawari.watches.prices import products, site_check, tables, tasks
from mimawari.watches.prices.cli.commands import app as commands
from mimawari.watches.prices.notifications import TELLINGS

MINUTE = timedelta(minutes=1)

watch = Watch(
    name="prices",
    tables=tables.metadata,
    tellings=TELLINGS,
    tasks=(tasks.enqueue_crawls, tasks.crawl_list, tasks.sync_detail, site_check.check_site),
    controls=(site_check.CONTROL,),
    limits=(
        Limit(products.LIST, count=10, per=MINUTE),
        Limit(products.DETAIL, count=10, per=MINUTE),
    ),
    targets=products.list_targets,
    naming=products.NAMING,
    router="mimawari.watches.prices.api.routes:router",
    commands=commands,
    declared="mimawari.watches.prices.export:declared",
)
