"""Live streams: late starts, black-outs, silence and their ends, told by signed webhooks."""

from datetime import timedelta

import httpx2

from mimawari.kernel.rights import PodRights
from mimawari.kernel.values import BreakerPolicy, Limit
from mimawari.kernel.watch import Manners, Watch
from mimawari.net import robots
from mimawari.settings import Settings
from mimawari.sites import youtube
from mimawari.watches.streams import queries, tables, tasks
from mimawari.watches.streams.cli import commands
from mimawari.watches.streams.deliveries import WebhookDestination
from mimawari.watches.streams.errors import CODES, MEANINGS
from mimawari.watches.streams.notifications import TELLINGS
from mimawari.watches.streams.outside import CHECK, RESOLVE
from mimawari.watches.streams.pods import assignments
from mimawari.watches.streams.pods import tasks as pod_tasks
from mimawari.watches.streams.startup import look_after
from mimawari.watches.streams.sync import SCHEME

READS_A_MINUTE = 100
CHECKS_A_SECOND = 20
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
PAUSE = 30 * SECOND


def limits(settings: Settings) -> tuple[Limit, ...]:
    """Tell how often streams are looked at, and how often it is asked how they stand."""
    hourly = settings.streams_resolves
    return (
        Limit(CHECK, count=CHECKS_A_SECOND, per=SECOND),
        # Many are asked for at once where many are added; what counts is how many in an hour.
        Limit(RESOLVE, count=hourly, per=HOUR, apart=min(SECOND, SECOND * 60 / hourly)),
    )


def pod_rights(settings: Settings) -> PodRights:
    """Return what pods that run monitors need: a check, a resolver and its robots.txt."""
    resolver = settings.streams_resolver_url
    origins = [robots.origin_of(httpx2.URL(resolver))] if resolver else []
    return PodRights(
        limits=(*limits(settings), *map(robots.limit_of, origins)),
        sites=frozenset({youtube.SITE.name}),
        cached=frozenset(map(robots.key_of, origins)),
        is_at_work=assignments.is_at_work,
    )


watch = Watch(
    name="streams",
    tables=tables.metadata,
    tellings=TELLINGS,
    tasks=(tasks.check_stream, pod_tasks.tend_pod),
    limits=limits,
    naming=queries.NAMING,
    breakers={youtube.SITE.name: BreakerPolicy(failures=5, cool_for=PAUSE, trial_for=PAUSE)},
    destinations=lambda store, clock, watches: {
        SCHEME: WebhookDestination(store, clock, watches.settings)
    },
    router="mimawari.watches.streams.api.routes:router",
    internal_router="mimawari.watches.streams.api.internal:router",
    pod_rights=pod_rights,
    manners=Manners(
        prefixes=("/api/v1/monitors", "/internal/v1/monitors"),
        codes=CODES,
        meanings=MEANINGS,
        reads_a_minute=READS_A_MINUTE,
    ),
    opening=look_after,
    declared="mimawari.watches.streams.export:declared",
    commands=commands.app,
)
