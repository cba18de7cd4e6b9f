"""Run schemathesis against the APIs: one list of exceptions, and one of what is covered.

Every response must be described. A request that fits the description must be accepted, except for
the classes in `REFUSED`: their rules cannot be written in a schema.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 180.0
ACCEPTED = ("2xx", "401", "403", "404", "409", "429")
"""Answers to a good request: it worked, or rights, a missing row, a state or a limit forbid it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A class of requests that fit the description and are refused."""

    name: str
    """A pattern of the operations it occurs at, which are named by method and path."""
    status: int
    reason: str

    def as_toml(self) -> str:
        """Return it as schemathesis is configured."""
        allowed = json.dumps([*ACCEPTED, str(self.status)])
        return (
            "[[operations]]\n"
            f"include-name-regex = {json.dumps(self.name)}\n"
            f"checks.positive_data_acceptance.expected-statuses = {allowed}\n"
        )


REFUSED = (
    Refused(
        name="^(POST|PUT|PATCH) /api/products", status=422,
        reason="a schema cannot say that of two prices one is larger, nor compare keywords",
    ),
    Refused(
        name="^(POST|PATCH) /api/notify", status=422,
        reason="a schema cannot say which addresses apprise knows",
    ),
    Refused(
        name="^POST /api/v1/monitors", status=400,
        reason="a schema cannot say which addresses name a video, nor which may be called",
    ),
    Refused(
        name="^PUT /internal/v1/monitors/.*/status$", status=400,
        reason="a schema cannot say what the state of a monitor holds, which is JSON in a string",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A part of an API, and how deeply it is tried."""

    paths: str
    """A pattern of the paths that are sent requests."""
    examples: int
    options: tuple[str, ...] = ()


PUBLIC: Mapping[str, Covered] = {
    "system": Covered(
        paths="^/(healthz|readyz|api/(jobs|status|schedule|why|sessions|example))", examples=15
    ),
    "hot": Covered(paths="^/api/v1/(ips|admin|leaderboard|alerts|system)", examples=3),
    "prices": Covered(paths="^/api/(products|crawl|prices)", examples=3),
    "rentals": Covered(paths="^/api/(queue|scrape|searches|properties|changes)", examples=3),
    # A monitor that was stopped is still shown.
    "streams": Covered(
        paths="^/api/v1/monitors", examples=5, options=("--exclude-checks", "use_after_free")
    ),
    "notify": Covered(paths="^/api/notify", examples=6),
}
"""Which test covers which paths of the public API."""


def find_described(description: Mapping[str, Any], covered: Covered) -> set[str]:
    """Return the described paths that a part covers."""
    return {path for path in description["paths"] if re.search(covered.paths, path)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Where requests are sent, and with which header."""

    address: str
    header: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Values that replace what would be made up, as schemathesis names them."""


async def check_description(
    sender: Sender, folder: Path, covered: Covered, document: Mapping[str, Any] | None = None
) -> None:
    """Run all phases with all checks, the same examples every time.

    A document that is given describes less than what is accepted.
    """
    made_up = "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in sender.parameters.items())
    config = "".join(one.as_toml() for one in REFUSED)
    (folder / "schemathesis.toml").write_text(
        f"[parameters]\n{made_up}\n{config}", encoding="utf-8"
    )
    where = [f"{sender.address}/openapi.json"]
    if document is not None:
        (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
        where = ["openapi.json", "--url", sender.address]
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).parent / "schemathesis"), "run", *where),
        *("--header", sender.header, "--include-path-regex", covered.paths),
        *("--checks", "all", "--mode", "all", "--max-examples", str(covered.examples)),
        *("--generation-deterministic", "--continue-on-failure", "--no-color", *covered.options),
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
