"""Every page and every kind of event is documented, and has its words in both languages."""

import re
from pathlib import Path

import pytest

from mimawari.notify import sync
from mimawari.watches import INSTALLED
from mimawari.watches.books import mailing
from mimawari.watches.streams.models import EventType
from mimawari.web.pages import PAGES
from mimawari.web.words import LANGUAGES, load_words

DOCS = Path(__file__).parents[2] / "docs"
UNSEEN = {"/books/mail/preview/{number:int}", "/queue/{job_id}/page"}
"""What is part of another page, or saved as a file."""
KIND = re.compile(r"[a-z]+\.[a-z_]+")


def quoted(document: str) -> set[str]:
    """List what stands in code marks in the tables of a document."""
    lines = (DOCS / document).read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    return set(re.findall(r"`([^`]+)`", "\n".join(rows)))


def told() -> set[str]:
    """List the kinds of events that people may be told, which bring their own words."""
    return {telling.kind for watch in INSTALLED for telling in watch.tellings}


def carried() -> set[str]:
    """List the kinds of events that are for programs: webhooks, mails and messages on their way."""
    return {*(str(kind) for kind in EventType), mailing.KIND, sync.KIND}


def test_every_page_is_documented_and_no_other() -> None:
    paths = {path for path, _, _ in PAGES}
    assert {one for one in quoted("pages.md") if one.startswith("/")} == paths


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_to_be_looked_at_has_its_picture(language: str) -> None:
    paths = [path for path, _, methods in PAGES if "GET" in methods and path not in UNSEEN]
    names = {re.sub(r"\{(\w+)(?::\w+)?\}", r"\1", path).strip("/") for path in paths}
    wanted = {f"{name.replace('/', '-') or 'overview'}.png" for name in names}
    assert {path.name for path in (DOCS / "pages" / language).iterdir()} == wanted
    shown = re.findall(r"\]\(pages/en/(.*)\)", (DOCS / "pages.md").read_text("utf-8"))
    assert {*shown} == wanted


def test_every_kind_of_event_is_documented_and_no_other() -> None:
    kinds = {one for one in quoted("events.md") if KIND.fullmatch(one)}
    assert kinds == told() | carried()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_event_has_its_words(language: str) -> None:
    wanted = {f"event.{kind.replace('.', '_')}" for kind in carried()}
    words = load_words(language)
    assert {key for key in words if key.startswith("event.")} == wanted
    tellings = [telling for watch in INSTALLED for telling in watch.tellings]
    assert all(telling.name(language) for telling in tellings)
