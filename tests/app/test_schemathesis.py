"""The API keeps to its own OpenAPI description, whatever is sent to it."""

import asyncio
import sys
from pathlib import Path

from mimawari.kernel.job import State
from tests.app.ground import KEY, Api, end, put

EXAMPLES = 15
SECONDS = 180.0


async def check_description(api: Api, folder: Path, examples: int, *options: str) -> None:
    """Run all phases with all checks, the same examples every time."""
    process = await asyncio.create_subprocess_exec(
        *(Path(sys.executable).parent / "schemathesis", "run", f"{api.address}/openapi.json"),
        *("--header", f"X-API-Key: {KEY}"),
        *("--checks", "all", "--mode", "all", "--max-examples", str(examples), *options),
        *("--generation-deterministic", "--continue-on-failure", "--no-color"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert (await api.http.get("/readyz")).status_code == 200


async def test_the_api_keeps_to_its_description(api: Api, tmp_path: Path) -> None:
    await put(api.store, 3)
    await end(api.store, State.FAILED)
    await check_description(api, tmp_path, EXAMPLES)
