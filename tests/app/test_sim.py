"""`mimawari sim` as a person uses it: it says where it is, answers, and stops when told to."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator

import httpx2
import pytest

from tests.app.terminal import PROGRAMS, STOP_SECONDS, Terminal, wait_for


@pytest.fixture
def sim(terminal: Terminal) -> Iterator[subprocess.Popen[str]]:
    terminal.data.mkdir(parents=True, exist_ok=True)
    with (terminal.data / "out").open("w") as out:
        process = subprocess.Popen(
            [PROGRAMS / "mimawari", "sim", "--port", "0", "--seed", "3"],
            stdout=out,
            env=terminal.environment(),
            text=True,
        )
    yield process
    process.kill()
    process.wait()


def test_the_world_says_where_it_is_answers_and_stops(
    sim: subprocess.Popen[str], terminal: Terminal
) -> None:
    out = terminal.data / "out"
    wait_for(lambda: "_control" in out.read_text() or sim.poll() is not None)
    said = out.read_text()
    found = re.search(r"MIMAWARI_MERCARI_API_URL=(http://127\.0\.0\.1:[0-9]+)", said)
    assert found is not None
    address = found[1]
    assert f"MIMAWARI_ALLOW_HOSTS={address.removeprefix('http://')}" in said
    assert f"MIMAWARI_STREAMS_RESOLVER_URL={address}/resolve" in said
    assert "WEBHOOK_SIGNING_KEY=simulated-webhook-key" in said
    order = {"part": "books", "do": "gone", "times": 1}
    wait_for(lambda: _answers(address))
    assert httpx2.post(f"{address}/_control", content=json.dumps(order)).status_code == 201
    books = f"{address}/books/v1/volumes?q=subject:fiction&key=k"
    assert httpx2.get(books).status_code == 404
    seen = httpx2.get(f"{address}/_seen?part=books").json()["seen"]
    assert [one["order"]["do"] for one in seen] == ["gone"]
    sim.send_signal(signal.SIGTERM)
    assert sim.wait(STOP_SECONDS) == 0


def _answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/", timeout=30).status_code == 200
    except httpx2.ConnectError:
        return False


def test_a_port_that_is_taken_is_said_in_a_sentence(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = terminal.run("sim", "--port", str(taken.getsockname()[1]))
    assert "--port" in said.refused()
