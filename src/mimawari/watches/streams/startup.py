"""What is done beside the start of a process that serves the API."""

from mimawari.kernel.ports import Clock, Store
from mimawari.settings import Settings
from mimawari.watches.streams.reconciliation import Reconciler
from mimawari.watches.streams.runners import in_pods, open_runner


async def look_after(store: Store, clock: Clock, settings: Settings) -> None:
    """Compare once what is monitored with what runs; where that is pods, follow them for ever."""
    runner = open_runner(store, clock, settings)
    if not in_pods(settings):
        await Reconciler(store, clock, settings, runner).run()
        return
    # What leads to a cluster is an extra, which whoever runs no pods does without.
    from mimawari.watches.streams.pods.follow import PodWatch  # noqa: PLC0415

    await PodWatch(store, clock, settings).run()
