"""Serves the simulated world on loopback, and says how to point the system at it."""

import asyncio
import signal
from collections.abc import Mapping

import uvicorn

from mimawari import show
from mimawari.app.http.listening import Uvicorn, listen
from mimawari.errors import BadInput
from mimawari.kernel.clock import RealClock, ScaledClock
from mimawari.settings import Settings
from mimawari.sim.sites.webhooks import KEY
from mimawari.sim.sites.youtube.site import RESOLVER
from mimawari.sim.world import make_world

HOST = "127.0.0.1"
ADDRESSES = {
    "MIMAWARI_MERCARI_URL": "",
    "MIMAWARI_MERCARI_API_URL": "",
    "MIMAWARI_RENTALS_URL": "",
    "MIMAWARI_GOOGLE_BOOKS_URL": "",
    "MIMAWARI_STREAMS_RESOLVER_URL": RESOLVER,
}


async def run_world(settings: Settings, port: int, seed: int) -> None:
    """Serve the world until SIGTERM or SIGINT."""
    real = RealClock()
    scale = settings.time_scale
    anchor = settings.time_anchor or real.now()
    clock = real if scale == 1.0 else ScaledClock(scale, anchor)
    try:
        taken = listen(HOST, port)
    except BadInput as error:
        raise BadInput(
            f"port {port} of {HOST} is taken; give another with --port (0 takes a free one)",
            code=error.code,
        ) from error
    config = uvicorn.Config(
        make_world(clock, seed),
        log_config=None,
        access_log=False,
        # Each site names its own server, or none.
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = Uvicorn(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    shared = {"SCALE": f"{scale:g}", "ANCHOR": anchor.isoformat()} if scale != 1.0 else {}
    _greet(f"http://{HOST}:{taken.getsockname()[1]}", scale, seed, shared)
    await server.serve([taken])


def _greet(address: str, scale: float, seed: int, shared: Mapping[str, str]) -> None:
    show.facts(
        {"world": address, "seed": str(seed), "a second is": f"{scale:g} s", "stop": "Ctrl-C"}
    )
    lines = [f"export {name}={address}{path}" for name, path in ADDRESSES.items()]
    lines.append(f"export WEBHOOK_SIGNING_KEY={KEY}")
    lines.append(f"export MIMAWARI_ALLOW_HOSTS={address.removeprefix('http://')}")
    lines += [f"export MIMAWARI_TIME_{name}={value}" for name, value in shared.items()]
    show.console.print(
        "\nEverything in it is made up. To watch it instead of the real sites:\n\n  "
        + "\n  ".join(lines)
        + "\n\n"
        + f"  {address}/          what there is to see\n"
        + f"  {address}/_seen     all it was asked\n"
        + f"  {address}/_control  orders: be blocked, slow, gone, changed, …\n",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
