"""The API over TLS: with a certificate by setting, 1.2 or newer, and nothing in the clear."""

import json
import signal
import socket
import ssl
from pathlib import Path

import httpx2
import pytest

from tests.app.terminal import Terminal
from tests.net.sockets import make_certificate

HOST = "localhost"


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """A file with a key and its certificate."""
    folder = tmp_path / "tls"
    folder.mkdir()
    make_certificate(folder, HOST)
    return folder / "server.pem"


def given(cert: Path, key: Path | None = None) -> dict[str, str]:
    """Write the settings that name a certificate and its key."""
    return {"MIMAWARI_TLS_CERT": str(cert), "MIMAWARI_TLS_KEY": str(key or cert)}


def test_the_api_is_served_by_tls_1_2_or_newer_and_not_in_the_clear(
    terminal: Terminal, pem: Path
) -> None:
    trusting = ssl.create_default_context(cafile=pem)
    with terminal.serve(**given(pem)) as serving:
        address = serving.facts()["API"]
        port = int(address.rpartition(":")[2])
        assert address.startswith("https://")
        key = (terminal.data / "api-keys").read_text().strip()
        url = f"https://{HOST}:{port}/api/status"
        reply = httpx2.get(url, headers={"X-API-Key": key}, verify=trusting, timeout=30)
        assert reply.status_code == 200
        assert version_of(port, trusting) == "TLSv1.3"
        trusting.maximum_version = ssl.TLSVersion.TLSv1_2
        assert version_of(port, trusting) == "TLSv1.2"
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            version_of(port, old)
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=30)
        assert serving.stop(signal.SIGTERM) == 0


def version_of(port: int, context: ssl.SSLContext) -> str | None:
    """Shake hands and tell the version that both agreed on."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as wrapped,
    ):
        return wrapped.version()


def test_a_certificate_that_cannot_be_used_is_a_sentence(
    terminal: Terminal, pem: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_certificate(other, HOST)
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    for variables, says in (
        (given(tmp_path / "none.pem", pem), "cannot be read (No such file or directory)"),
        (given(pem, other / "server.pem"), "is not the key of the certificate"),
        (given(garbage), "are no certificate and key; give PEM files"),
        ({"MIMAWARI_TLS_CERT": str(pem)}, "set both, or neither"),
    ):
        assert says in terminal.run("serve", **variables).refused()


def test_the_doctor_tells_of_the_certificate(terminal: Terminal, pem: Path) -> None:
    [tls] = [
        one for one in terminal.run("doctor", "--json", **given(pem)).json() if one["name"] == "TLS"
    ]
    assert (tls["ok"], "until 2120-01-01" in tls["found"]) == (True, True)
    said = terminal.run("doctor", "--json", **given(pem.parent / "none.pem", pem))
    [tls] = [one for one in json.loads(said.out) if one["name"] == "TLS"]
    assert (said.code, tls["ok"]) == (1, False)
    assert "cannot be read" in tls["advice"]
