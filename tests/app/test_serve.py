"""`mimawari serve` from its first start to its end."""

import asyncio
import signal
import socket
import stat
from contextlib import ExitStack

import httpx2
import pytest

from mimawari.app.http.listening import listen
from tests.app.terminal import Serving, Terminal, wait_for


def ask(serving: Serving, path: str, key: str) -> httpx2.Response:
    """Ask the API that a process serves."""
    return httpx2.get(f"{serving.facts()['API']}{path}", headers={"X-API-Key": key}, timeout=30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_start_makes_all_it_needs_and_a_signal_ends_it_well(
    terminal: Terminal, number: signal.Signals
) -> None:
    with terminal.serve() as serving:
        facts = serving.facts()
        path = terminal.data / "api-keys"
        assert facts["API keys"] == str(path)
        assert str(terminal.data / "mimawari.db") in facts["database"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(terminal.data.stat().st_mode) == 0o700
        key = path.read_text().strip()
        assert len(key) >= 32
        assert ask(serving, "/api/status", key).status_code == 200
        assert ask(serving, "/api/status", "wrong").status_code == 401
        assert serving.stop(number) == 0
        assert serving.log()[-1]["message"] == "stopped"
        assert key not in serving.err.read_text()


def test_a_second_start_keeps_the_key(terminal: Terminal) -> None:
    keys = []
    for _ in range(2):
        with terminal.serve() as serving:
            serving.facts()
            keys.append((terminal.data / "api-keys").read_text())
            assert serving.stop(signal.SIGTERM) == 0
    assert keys[0] == keys[1]


def test_first_starts_at_once_agree_on_one_key(terminal: Terminal) -> None:
    with ExitStack() as stack:
        several = [stack.enter_context(terminal.serve("--role", "api")) for _ in range(3)]
        for serving in several:
            serving.facts()
        key = (terminal.data / "api-keys").read_text().strip()
        assert [ask(serving, "/api/status", key).status_code for serving in several] == [200] * 3
    assert {path.name for path in terminal.data.glob("api-keys*")} == {"api-keys"}


def test_keys_from_the_environment_are_taken_as_they_are(terminal: Terminal) -> None:
    with terminal.serve(API_KEY="one,two") as serving:
        assert serving.facts()["API keys"] == "from the environment"
        assert [ask(serving, "/api/status", key).status_code for key in ("one", "two")] == [200] * 2
        assert not (terminal.data / "api-keys").exists()


@pytest.mark.parametrize("content", [b"", b"\n", b"good\n\n", b"# only a remark\n"])
def test_a_key_file_with_an_empty_key_is_refused(terminal: Terminal, content: bytes) -> None:
    terminal.data.mkdir()
    (terminal.data / "api-keys").write_bytes(content)
    assert "empty key" in terminal.run("serve", MIMAWARI_PORT="0").refused()


def test_a_port_that_is_taken_is_a_sentence(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = terminal.run("serve", MIMAWARI_PORT=port).refused()
    assert f"127.0.0.1:{port}" in sentence
    assert "MIMAWARI_PORT" in sentence


def test_the_api_alone_serves_and_does_nothing_else(terminal: Terminal) -> None:
    with terminal.serve("--role", "api") as serving:
        key = "none"
        assert ask(serving, "/readyz", key).json() == {"status": "ready"}
        # Monitors are looked after beside the start: a stop that came before it would be silent.
        wait_for(lambda: "reconciler" in serving.err.read_text())
        assert serving.stop(signal.SIGTERM) == 0
        assert {line["component"] for line in serving.log()} == {"reconciler", "serve"}


def test_a_worker_alone_works_and_serves_no_api(terminal: Terminal) -> None:
    with terminal.serve("--role", "worker") as serving:
        assert serving.facts()["API"] == "not in this process"
        wait_for(lambda: [line for line in serving.log() if line["message"] == "worker started"])
        assert serving.stop(signal.SIGTERM) == 0
        assert {line["component"] for line in serving.log()} == {"rentals", "serve", "worker"}
    assert not (terminal.data / "api-keys").exists()


async def test_a_reply_is_sent_at_once_and_does_not_wait_for_more_to_send() -> None:
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken: socket.socket = writer.get_extra_info("socket")
        accepted.set_result(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listen("127.0.0.1", 0) as taken:
        async with await asyncio.start_server(look, sock=taken):
            _, writer = await asyncio.open_connection(*taken.getsockname())
            assert await accepted
            writer.close()
