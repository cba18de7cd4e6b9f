"""Log lines have the form of §11.2, whichever process and part writes them."""

import io
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from mimawari.sim.sites.youtube.programme import Shot
from tests.app.terminal import Terminal, wait_for
from tests.net.sockets import free_port
from tests.streams.log_form import EXAMPLE, MOMENT, logged, read
from tests.streams.scene import LEAST, Scene


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged in a test."""
    with logged() as stream:
        yield stream


def test_the_line_of_the_spec_is_written_field_by_field(lines: io.StringIO) -> None:
    logger = structlog.get_logger(component=EXAMPLE["component"])
    logger.info(EXAMPLE["message"], monitor_id=EXAMPLE["monitor_id"], **EXAMPLE["data"])
    [line] = read(lines.getvalue())
    assert line == {**EXAMPLE, "timestamp": line["timestamp"]}


@pytest.mark.parametrize(
    ("method", "level"),
    [
        *(("debug", "DEBUG"), ("info", "INFO"), ("warning", "WARN"), ("error", "ERROR")),
        ("critical", "ERROR"),
    ],
)
def test_levels_are_those_of_the_spec(lines: io.StringIO, method: str, level: str) -> None:
    getattr(structlog.get_logger(component="test"), method)("hello")
    [line] = read(lines.getvalue())
    assert line["level"] == level


@pytest.mark.parametrize("name", ["target", "lane", "caller"])
def test_a_line_that_names_a_monitor_otherwise_has_its_id_too(
    lines: io.StringIO, name: str
) -> None:
    monitor_id = EXAMPLE["monitor_id"]
    structlog.get_logger(component="worker").info("job waits", **{name: f"streams:{monitor_id}"})
    structlog.get_logger(component="worker").info("job waits", **{name: "rentals:a-list"})
    about, other = read(lines.getvalue())
    assert (about["monitor_id"], about["data"]) == (monitor_id, {name: f"streams:{monitor_id}"})
    assert "monitor_id" not in other


async def test_a_black_out_is_logged_as_the_example_and_so_is_all_else_of_its_monitor(
    lines: io.StringIO, scene: Scene
) -> None:
    scene.put(Shot(what="black", start=10, end=600), window=300)
    monitor = await scene.add(**LEAST)
    await scene.pass_time(30)
    # What a part logs that does not know of monitors is about this one all the same.
    await scene.clock.advance(timedelta(seconds=470))
    await scene.pass_time(5)
    found = read(lines.getvalue())
    by_message = {line["message"]: line for line in found}
    told = by_message["Blackout detected"]
    assert list(told) == list(EXAMPLE)
    for name in ("level", "component", "message"):
        assert told[name] == EXAMPLE[name]
    for name, value in EXAMPLE["data"].items():
        assert isinstance(told["data"][name], type(value) | float)
    assert told["data"]["duration_sec"] == LEAST["blackout_threshold_sec"]
    assert MOMENT.fullmatch(told["data"]["started_at"])
    assert {"fell behind", "limit", "delivered", "job ended"} <= by_message.keys()
    assert by_message["delivered"]["monitor_id"] == monitor.id
    about = [line for line in found if line["component"] not in {"scheduler", "deliverer"}]
    assert [one for one in about if one.get("monitor_id") != monitor.id] == []


def test_a_process_that_serves_and_one_that_runs_a_pods_monitor_log_alike(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "data")
    with terminal.serve() as serving:
        serving.facts()
        serving.stop(signal.SIGTERM)
    assert "stopped" in {line["message"] for line in read(serving.err.read_text())}
    variables = {
        "INTERNAL_API_KEY": "the-inner-key",
        "MIMAWARI_GATEWAY_URL": f"http://127.0.0.1:{free_port()}",
        "MONITOR_ID": EXAMPLE["monitor_id"],
    }
    with terminal.serve(program="monitor", **variables) as pod:
        wait_for(lambda: "gateway away" in pod.err.read_text())
        pod.stop(signal.SIGTERM)
    found = read(pod.err.read_text())
    assert {line["monitor_id"] for line in found} == {EXAMPLE["monitor_id"]}
