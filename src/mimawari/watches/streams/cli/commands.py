"""Commands of the streams watch."""

import typer

from mimawari.watches.streams.cli import add, events, monitors, test

app = typer.Typer(help="Live streams: is it live, black, silent, right now?", no_args_is_help=True)
app.command(name="add")(add.add)
app.command(name="ls")(monitors.list_monitors)
app.command(name="show")(monitors.show_monitor)
app.command(name="stop")(monitors.stop)
app.command(name="events")(events.list_events)
app.command(name="test")(test.look_once)
