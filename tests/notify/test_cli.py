"""The commands of notifications, as a person and as a program use them."""

import json
from pathlib import Path

from tests.app.terminal import Terminal

SECRET = "json://127.0.0.1:9/very-secret-word"


def test_a_target_is_added_listed_changed_tried_and_removed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    added = terminal.run("notify", "add", "phone", SECRET, "--kind", "incident.began")
    assert added.out == "phone is told at once.\nTry it: mimawari notify test phone\n"
    listed = terminal.run("notify", "ls")
    assert "json://***" in listed.out
    changed = terminal.run("notify", "update", "phone", "--every", "2h", "--rename", "電話")
    assert changed.out == "電話 is told together, 2h after the first.\n"
    assert terminal.run("notify", "disable", "電話").out == "電話 is off.\n"
    assert terminal.run("notify", "enable", "電話").code == 0
    [shown] = json.loads(terminal.run("notify", "ls", "--json").out)
    assert (shown["name"], shown["how"], shown["span"]) == ("電話", "grouped", "2h")
    tried = terminal.run("notify", "test", "電話")
    assert tried.code == 1
    assert "127.0.0.1 is not public" in tried.out
    one = terminal.run("notify", "show", "電話")
    assert "Nothing was sent yet." in one.out
    everything = "".join(said.out + said.err for said in (added, listed, changed, tried, one))
    assert "very-secret-word" not in everything
    assert terminal.run("notify", "rm", "電話").code == 0
    assert "Nobody is notified yet" in terminal.run("notify", "ls").out


def test_what_cannot_be_taken_is_refused_with_a_sentence(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    for words, said in (
        (("add", "a", "nonsense"), "url: this is no address of apprise"),
        (("add", "a", "mailto://u:p@x.jp"), "MIMAWARI_SMTP_HOST"),
        (("add", "a", "env:X", "--kind", "a.b"), "nothing is called 'a.b'"),
        (("add", "a", "env:X", "--every", "1h", "--daily", "08:00"), "give one of --at-once"),
        (("add", "a", "env:X", "--language", "fr"), "language: "),
        (("test", "nobody"), "no target is called 'nobody'"),
    ):
        refused = terminal.run("notify", *words)
        assert refused.code == 2, words
        assert said in refused.err.replace("\n", " "), words
