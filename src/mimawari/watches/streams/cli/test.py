"""The command that looks once at a stream or a file, and draws what it saw and heard."""

from typing import Annotated

import typer

from mimawari.edges.system import Json, System, run
from mimawari.media.findings import USUAL_SILENCE_DB
from mimawari.watches.streams.models import Quality

MOST_SECONDS = 3600

Target = Annotated[
    str, typer.Argument(metavar="TARGET", help="A video, playlist or segment, or a local file.")
]


def look_once(
    context: typer.Context,
    target: Target,
    *,
    quality: Annotated[
        Quality, typer.Option("--quality", help="Which variant is looked at.")
    ] = "lowest",
    seconds: Annotated[
        int, typer.Option(min=1, max=MOST_SECONDS, help="How much is looked at, at the most.")
    ] = 60,
    silence_db: Annotated[
        float, typer.Option("--silence-db", min=-120, max=0, help="What is under it is silent.")
    ] = USUAL_SILENCE_DB,
    json: Json = False,
) -> None:
    """Look once at a stream or a file, and draw a timeline of picture and sound."""
    # The decoder takes a while to load and much room, which nothing else here needs.
    from mimawari.watches.streams.probe.command import Wish, look_and_show  # noqa: PLC0415

    wish = Wish(
        target=target, quality=quality, seconds=seconds, silence_db=silence_db, is_json=json
    )

    async def work(opened: System) -> None:
        await look_and_show(opened, wish)

    run(context, work)
