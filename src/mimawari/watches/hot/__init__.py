"""Which anime franchises (IPs) sell fastest on Mercari: what comes in, what goes out, rankings."""

from datetime import timedelta

from mimawari.kernel.values import BreakerPolicy, Limit
from mimawari.kernel.watch import Watch
from mimawari.sites import mercari
from mimawari.watches.hot import franchises, tables, tasks
from mimawari.watches.hot.cli.commands import app as commands
from mimawari.watches.hot.notifications import TELLINGS

watch = Watch(
    name="hot",
    tables=tables.metadata,
    tellings=TELLINGS,
    tasks=(tasks.crawl, tasks.apply, tasks.rollup, tasks.fold, tasks.forget),
    # A page each three seconds, as somebody who looks through a list would ask for them.
    limits=(Limit(tasks.LIMIT, count=20, per=timedelta(minutes=1)),),
    breakers={mercari.NAME: BreakerPolicy(failures=2, cool_for=timedelta(minutes=30))},
    targets=franchises.list_targets,
    naming=franchises.NAMING,
    router="mimawari.watches.hot.api.routes:router",
    commands=commands,
    declared="mimawari.watches.hot.export:declared",
)
