"""Rental listings of Yahoo! real estate, read so slowly that nobody minds."""

from datetime import timedelta

from mimawari.kernel.values import BreakerPolicy, Limit
from mimawari.kernel.watch import Watch
from mimawari.settings import Settings
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import lists, log_lines, site_check, tables, tasks
from mimawari.watches.rentals.cli.commands import app as commands
from mimawari.watches.rentals.notifications import TELLINGS


def limits(settings: Settings) -> tuple[Limit, ...]:
    """Tell how often the site may be asked: for details as often as set, for lists each 10 s."""
    return (
        Limit(tasks.DETAIL, count=settings.rentals_details_per_hour, per=timedelta(hours=1)),
        Limit(tasks.LIST, count=6, per=timedelta(minutes=1)),
    )


watch = Watch(
    name="rentals",
    tables=tables.metadata,
    tellings=TELLINGS,
    tasks=(
        tasks.scrape_list,
        tasks.scrape_detail,
        tasks.enqueue_daily,
        tasks.clean_up,
        site_check.check_site,
    ),
    controls=(site_check.CONTROL,),
    limits=limits,
    breakers={SITE.name: BreakerPolicy(failures=2, cool_for=timedelta(hours=1))},
    targets=lists.list_targets,
    naming=lists.NAMING,
    started=log_lines.started,
    router="mimawari.watches.rentals.api.routes:router",
    commands=commands,
    declared="mimawari.watches.rentals.export:declared",
)
