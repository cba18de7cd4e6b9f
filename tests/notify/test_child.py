"""What sends a message sees no file it was not given, whatever its address asks for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from mimawari.kernel.clock import RealClock
from mimawari.net.notify import Message, send
from tests.notify.catcher import Catcher

CHILD = Path(__file__).parents[2] / "src" / "mimawari" / "net" / "notify_child.py"
MESSAGE = Message(id="1", title="t", body="b")


def confined(source: str) -> str:
    """Run code as the child does, after it has shut itself off, and return what it says."""
    prelude = f"import runpy\nchild = runpy.run_path({str(CHILD)!r})\nchild['close_files']()\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", prelude + source],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "attempt",
    [
        "open({secret!r}).read()",
        "open({secret!r}.encode()).read()",
        "import os; os.open({secret!r}, os.O_RDONLY)",
        "import pathlib; pathlib.Path({secret!r}).read_text()",
        "import os, sys; open(sys.prefix + '/' + '../' * 40 + {secret!r})",
        "open('etc/passwd')",
        "open('/proc/self/environ')",
        "import os; os.listdir({folder!r})",
        "import os; list(os.scandir({folder!r}))",
        "open({folder!r} + '/new', 'w')",
        "import sys; open(sys.prefix + '/new', 'w')",
        "import os; os.symlink({secret!r}, {folder!r} + '/link')",
        "import os; os.rename({secret!r}, {folder!r} + '/moved')",
        "import os; os.remove({secret!r})",
        "import sqlite3; sqlite3.connect({folder!r} + '/new.db')",
        "import syslog; syslog.syslog('x')",
    ],
)
def test_files_of_this_machine_are_out_of_reach(attempt: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("very-secret-word")
    said = confined(attempt.format(secret=str(secret), folder=str(tmp_path)))
    assert "Unseen: this service" in said
    assert "very-secret-word" not in said
    assert [one.name for one in tmp_path.iterdir()] == ["secret"]


def test_the_code_of_libraries_is_still_loaded() -> None:
    said = confined("import apprise, requests, certifi\nprint(bool(apprise.__version__))")
    assert said == "True\n"


async def test_an_address_that_names_a_file_of_ours_sends_nothing_of_it(
    catcher: Catcher, tmp_path: Path
) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    found = {
        "type": "service_account", "project_id": "project", "private_key_id": "1",
        "private_key": key.decode(), "client_email": "secret@example.org", "client_id": "1",
        "token_uri": f"http://127.0.0.1:{catcher.port}/token",
    }  # fmt: skip
    (tmp_path / "key.json").write_text(json.dumps(found))
    url = f"fcm://project/device-token-12345?mode=oauth2&keyfile={tmp_path}/key.json"
    report = await send(url, MESSAGE, catcher.settings, RealClock())
    assert not report.is_sent
    assert report.exchanges == ()
