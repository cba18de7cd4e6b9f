"""Commands of the streams watch."""

import typer

from mimawari.watches.streams import cli_add, cli_events, cli_monitors, cli_test

app = typer.Typer(help="Live streams: is it live, black, silent, right now?", no_args_is_help=True)
app.command(name="add")(cli_add.add)
app.command(name="ls")(cli_monitors.list_monitors)
app.command(name="show")(cli_monitors.show_monitor)
app.command(name="stop")(cli_monitors.stop)
app.command(name="events")(cli_events.list_events)
app.command(name="test")(cli_test.look_once)
