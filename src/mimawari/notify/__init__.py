"""Notifications: who is told of which events, how, and what really happened."""

from mimawari.kernel.telling import SCHEME as TELL
from mimawari.kernel.watch import Watch
from mimawari.notify import incidents, sync, tables, targets, tasks
from mimawari.notify.cli import app as commands
from mimawari.notify.deliveries import NotifyDestination, TellDestination

watch = Watch(
    name="notify",
    tables=tables.metadata,
    tasks=(tasks.gather, tasks.look),
    targets=targets.list_scheduled,
    naming=targets.NAMING,
    tellings=incidents.TELLINGS,
    destinations=lambda store, clock, watches: {
        TELL: TellDestination(store, clock, watches.settings),
        sync.SCHEME: NotifyDestination(store, clock, watches.settings, watches.tellings),
    },
    router="mimawari.notify.api:router",
    declared="mimawari.notify.export:declared",
    commands=commands,
)
"""It watches what the watches tell."""
