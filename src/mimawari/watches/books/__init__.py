"""New books from Google Books, read page by page by a cursor and mailed as a digest."""

from datetime import timedelta

from mimawari.kernel.values import BreakerPolicy, Limit
from mimawari.kernel.watch import Watch
from mimawari.sites import google_books
from mimawari.watches.books import jobs, mailing, tables, tasks
from mimawari.watches.books.cli.commands import app as commands
from mimawari.watches.books.deliveries import DigestDestination
from mimawari.watches.books.notifications import TELLINGS

MINUTE = timedelta(minutes=1)

watch = Watch(
    name="books",
    tables=tables.metadata,
    tellings=TELLINGS,
    tasks=(tasks.collect_page, tasks.mail_digest),
    limits=(Limit(jobs.PAGE, count=60, per=MINUTE),),
    # Bursts and bad hours pass soon.
    breakers={google_books.SITE.name: BreakerPolicy(failures=3, cool_for=timedelta(minutes=10))},
    targets=jobs.list_targets,
    naming=jobs.NAMING,
    destinations=lambda store, clock, watches: {
        mailing.SCHEME: DigestDestination(store, clock, watches.settings)
    },
    commands=commands,
    declared="mimawari.watches.books.export:declared",
)
