"""The commands on sessions, and what a start with other keys means for them."""

import httpx2

from tests.app.terminal import Serving, Terminal

FIRST, SECOND = "a-key-of-twenty-and-more-1", "a-key-of-twenty-and-more-2"


def log_in(serving: Serving, key: str) -> httpx2.Client:
    """Log a browser in."""
    http = httpx2.Client(base_url=serving.facts()["API"])
    assert http.post("/login", data={"key": key}).status_code == 303
    return http


def test_commands_list_and_end_sessions_and_those_of_a_key_that_is_gone_end_at_the_start(
    terminal: Terminal,
) -> None:
    with terminal.serve("--role", "api", API_KEY=FIRST) as serving:
        mine, other = log_in(serving, FIRST), log_in(serving, FIRST)
        listed = terminal.run("sessions", "ls", "--json").json()
        assert [one["key_number"] for one in listed] == [1, 1]
        for one in listed:
            assert one["id"] in terminal.run("sessions", "ls").out
        assert "1 session ended" in terminal.run("sessions", "end", listed[0]["id"]).out
        assert sorted(http.get("/").status_code for http in (mine, other)) == [200, 303]
        assert "sessions ls" in terminal.run("sessions", "end", listed[0]["id"]).refused()
    with terminal.serve("--role", "api", API_KEY=SECOND) as serving:
        http = log_in(serving, SECOND)
        [left] = terminal.run("sessions", "ls", "--json").json()
        assert left["id"] not in {one["id"] for one in listed}
        assert "1 session ended" in terminal.run("sessions", "end", "--all").out
        assert http.get("/").status_code == 303
    assert "No sessions" in terminal.run("sessions", "ls").out


def test_an_end_of_nothing_or_of_two_things_is_a_sentence(terminal: Terminal) -> None:
    for words in ((), ("x", "--all")):
        assert "--all" in terminal.run("sessions", "end", *words).refused()
