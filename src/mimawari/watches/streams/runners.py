"""Chooses who runs monitors, as the settings say."""

from typing import TYPE_CHECKING

from mimawari.errors import BadInput
from mimawari.installation import install_advice
from mimawari.kernel.ports import Clock, Store, Tx
from mimawari.settings import Settings
from mimawari.watches.streams.models import Monitor
from mimawari.watches.streams.pods import assignments
from mimawari.watches.streams.runner import JobRunner, Runner, member_of, place

if TYPE_CHECKING:
    from mimawari.watches.streams.pods.runner import PodRunner


def in_pods(settings: Settings) -> bool:
    """Say whether monitors run in pods."""
    return settings.streams_runner == "kubernetes"


async def start_in(tx: Tx, monitor: Monitor, settings: Settings) -> None:
    """Run a monitor that was just made, with the transaction or not at all."""
    if in_pods(settings):
        await assignments.assign(tx, monitor, settings.streams_per_pod)
    else:
        place(tx, monitor)


async def stop_in(tx: Tx, monitor_id: str, settings: Settings) -> None:
    """Run a monitor no more, with the transaction or not at all."""
    if in_pods(settings):
        await assignments.release(tx, monitor_id)
    else:
        tx.remove(member_of(monitor_id))


def open_runner(store: Store, clock: Clock, settings: Settings) -> Runner:
    """Make the runner that the settings name."""
    return open_pods(store, clock, settings) if in_pods(settings) else JobRunner(store, clock)


def open_pods(store: Store, clock: Clock, settings: Settings) -> "PodRunner":
    """Make the runner of pods; what leads to a cluster is loaded only here, and is an extra."""
    try:
        from mimawari.watches.streams.pods.runner import PodRunner  # noqa: PLC0415
    except ImportError as error:
        raise BadInput(
            f"running pods needs a package that is missing ({error.name}); {install_advice('k8s')}",
            code="extra_missing",
        ) from error
    return PodRunner(store, clock, settings)
