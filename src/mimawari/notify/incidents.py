"""What people may be told of incidents: that one began, that it goes on, that it is over."""

from collections.abc import Iterable
from typing import Any

from mimawari.kernel.incidents import SITE, Incident
from mimawari.kernel.telling import Facts, Telling
from mimawari.kernel.watch import Watches

BEGAN, REMINDED, OVER = "incident.began", "incident.reminded", "incident.over"
KINDS = (BEGAN, REMINDED, OVER)


def watches_of(watches: Watches, subject: str, kind: str) -> tuple[str, ...]:
    """Name the watches that an incident is of: a site may be asked by several."""
    if kind != SITE:
        return (kind.partition(".")[0],)
    site = subject.removeprefix(f"{SITE}:")
    return tuple(one.name for one in watches.all if site in _sites(one.breakers, one.tasks))


def _sites(breakers: Iterable[str], tasks: Iterable[Any]) -> set[str]:
    return {*breakers, *(task.site for task in tasks if task.site)}


def facts_of(incident: Incident) -> dict[str, Any]:
    """Write what is told of an incident, beside its name."""
    return {
        "failures": incident.failures,
        "reason": incident.reason,
        "job_id": incident.job_id,
    }


def _name(facts: Facts) -> str:
    # What was written down by an earlier version has no name.
    return str(facts.get("name") or facts["subject"])


def _began(facts: Facts, language: str) -> str:
    if language == "ja":
        return f"{_name(facts)}: {facts['failures']}回続けて失敗しています: {facts['reason']}"
    return f"{_name(facts)} failed {facts['failures']} times in a row: {facts['reason']}"


def _reminded(facts: Facts, language: str) -> str:
    if language == "ja":
        return f"{_name(facts)}: まだ失敗が続いています({facts['failures']}回): {facts['reason']}"
    return f"{_name(facts)} still fails, {facts['failures']} times by now: {facts['reason']}"


def _over(facts: Facts, language: str) -> str:
    return f"{_name(facts)}: {'復旧しました' if language == 'ja' else 'over, it works again'}"


def _path(facts: Facts) -> str:
    return f"/queue/{facts['job_id']}" if facts.get("job_id") else "/queue"


def _home(_facts: Facts) -> str:
    return "/"


TELLINGS = (
    Telling(kind=BEGAN, ja="障害", en="incident", line=_began, path=_path),
    Telling(kind=REMINDED, ja="続いている障害", en="incident goes on", line=_reminded, path=_path),
    Telling(kind=OVER, ja="障害の復旧", en="incident over", line=_over, path=_home),
)
