"""Everything that the program serves is requested."""

import asyncio
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.golden.keeping import FOLDER, load_kept
from tests.golden.program import Described, describe, environment, list_json_commands
from tests.golden.reading import REQUESTS, list_parameters, list_requests

NOT_REQUESTED: Mapping[str, str] = {
    "/settings/sessions": "shows the session that reads it, which is new each time",
    "/changes": "a stream that never ends and carries no data",
    "/static/{name}": "files of the program that hold nothing of a database",
}
"""Pages that golden data leave out, and why."""
BY_NETWORK = "needs a site and a worker"
CHANGES = "changes the database"
NOT_RUN: Mapping[str, str] = {
    "books run-due": BY_NETWORK,
    "db copy": "writes another database; its sums are compared by its own test",
    "notify test": BY_NETWORK,
    "prices crawl": BY_NETWORK,
    "rentals list": BY_NETWORK,
    "rentals scrape": BY_NETWORK,
    "sim check books": "judges by a world of its own",
    "sim check hot": "judges by a world of its own",
    "sim check prices": "judges by a world of its own",
    "sim check rentals": "judges by a world of its own",
    "sim check streams": "judges by a world of its own",
    "sessions ls": "lists the sessions of the reading itself, which are new each time",
    "streams add": CHANGES,
    "streams stop": CHANGES,
    "streams test": BY_NETWORK,
}
"""Commands with --json that golden data leave out, and why."""
Asked = dict[str, set[str]]
"""The parameters that were given, by the path that was asked for."""


def _matches(template: str, path: str) -> bool:
    pattern = re.sub(r"\\{[^}]*:path\\}", ".*", re.escape(template))
    return re.fullmatch(re.sub(r"\\{[^}]*\\}", "[^/]+", pattern), path) is not None


def _find_template(path: str, templates: Iterable[str]) -> str | None:
    """Find the most literal template of a path, as routes with parameters come last."""
    found = [one for one in templates if _matches(one, path)]
    return min(found, key=lambda one: (":path}" in one, one.count("{")), default=None)


def list_missing(document: Mapping[str, Any], requests: Iterable[str]) -> list[str]:
    """List the GET routes of an API and their parameters that no request is for."""
    routes = {
        path: {one["name"] for one in methods["get"].get("parameters", ()) if one["in"] == "query"}
        for path, methods in document["paths"].items()
        if "get" in methods
    }
    asked: Asked = {}
    for text in requests:
        template = _find_template(text.partition("?")[0], routes)
        if template is not None:
            asked.setdefault(template, set()).update(list_parameters(text))
    missing = [path for path in routes if path not in asked]
    return missing + [
        f"{path}?{name}="
        for path, names in routes.items()
        for name in sorted(names - asked.get(path, names))
    ]


def list_missing_pages(templates: Iterable[str], requests: Iterable[str]) -> list[str]:
    """List the pages that no request is for."""
    known = list(templates)
    asked = {_find_template(text.partition("?")[0], known) for text in requests}
    return [one for one in known if one not in asked and one not in NOT_REQUESTED]


def list_unrun(commands: Iterable[str], lines: Iterable[str]) -> list[str]:
    """List the commands that have --json and are not run with it."""
    run = [line for line in lines if "--json" in line]
    return [
        command
        for command in commands
        if command not in NOT_RUN and not any(line.startswith(f"{command} ") for line in run)
    ]


def _texts(shelf: str) -> list[str]:
    return [request.text for request in list_requests(shelf)]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Described:
    folder = tmp_path_factory.mktemp("described")
    with environment(folder, f"sqlite:///{folder}/empty.db"):
        return asyncio.run(describe())


def test_every_route_of_both_apis_and_every_parameter_is_requested(described: Described) -> None:
    assert list_missing(described.api, _texts("api")) == []
    assert list_missing(described.internal, _texts("internal")) == []


def test_every_page_is_requested(described: Described) -> None:
    assert list_missing_pages(described.pages, _texts("pages")) == []
    assert {*NOT_REQUESTED} <= {*described.pages}


def test_every_command_with_json_is_run_with_it() -> None:
    assert list_unrun(list_json_commands(), _texts("commands")) == []
    assert {*NOT_RUN} <= {*list_json_commands()}


def test_a_route_a_parameter_a_page_and_a_command_that_are_new_are_noticed(
    described: Described,
) -> None:
    routes = described.api["paths"]
    added = {"get": {"parameters": [{"name": "new", "in": "query"}]}}
    assert list_missing({"paths": {**routes, "/api/new": added}}, _texts("api")) == ["/api/new"]
    assert list_missing({"paths": {"/api/status": added}}, _texts("api")) == ["/api/status?new="]
    pages = [*described.pages, "/new/{id:int}"]
    assert list_missing_pages(pages, _texts("pages")) == ["/new/{id:int}"]
    commands = [*list_json_commands(), "hot new"]
    assert list_unrun(commands, _texts("commands")) == ["hot new"]


def test_each_route_page_and_command_has_a_response_that_is_no_refusal(
    described: Described,
) -> None:
    kept = load_kept()
    good = [
        text
        for responses in kept.values()
        for text, response in responses.items()
        if response.get("status", response.get("code")) in {0, 200}
    ]
    assert list_missing(described.api, good) == []
    assert list_missing(described.internal, good) == []
    refused = set(list_missing_pages(described.pages, good))
    assert refused <= {"/language", "/{rest:path}"}
    assert set(list_unrun(list_json_commands(), good)) <= {"books doctor"}


def test_golden_data_name_no_folder_of_this_machine() -> None:
    folders = [str(Path(__file__).parents[2]), str(Path.home()), tempfile.gettempdir()]
    files = [*REQUESTS.glob("*.txt"), *FOLDER.glob("*.json")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    found = [(name, one) for name, text in texts.items() for one in folders if f"{one}/" in text]
    assert found == []
