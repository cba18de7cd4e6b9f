"""The command that looks at what the books watch needs."""

from datetime import timedelta

import typer

from mimawari import show
from mimawari.edges.checks import Check, show_checks
from mimawari.edges.system import Json, System, run
from mimawari.errors import MimawariError
from mimawari.kernel.ports import Reader
from mimawari.net.envelope import relay_of
from mimawari.net.mail import greet
from mimawari.settings import Settings
from mimawari.sites import google_books
from mimawari.text import one_line
from mimawari.watches.books import mailing, queries, quota
from mimawari.watches.books.jobs import PAGE
from mimawari.watches.books.mailing import MailState

MOMENT = timedelta(minutes=1)


def doctor(context: typer.Context, json: Json = False) -> None:
    """Check the key, the quota, the site, the jobs and the mail server; sends no mail."""

    async def work(opened: System) -> list[Check]:
        async with opened.store.read() as reader:
            found = [_key(opened.settings), await _quota(opened, reader)]
            found += [await _jobs(reader), await _mails(opened, reader)]
        return [*found, await _site(opened), await _server(opened.settings)]

    findings = run(context, work)
    if json:
        show.console.print_json(show.as_json(findings))
    else:
        show_checks(findings)
    if not all(one.ok for one in findings):
        raise typer.Exit(1)


def _key(settings: Settings) -> Check:
    is_set = bool(settings.books_key)
    advice = "" if is_set else "set MIMAWARI_BOOKS_KEY; Google Books answers nobody without one"
    found = "is set" if is_set else "is not set"
    return Check(name="API key", ok=is_set, found=found, advice=advice)


async def _quota(opened: System, reader: Reader) -> Check:
    used = await quota.find_usage(reader, opened.settings, opened.clock.now())
    lost = f", {used.reserved} on their way or lost" if used.reserved else ""
    found = f"{used.calls} of {used.limit} calls today{lost}"
    advice = "" if used.left else "wait for tomorrow, or set MIMAWARI_BOOKS_CALLS higher"
    return Check(name="quota", ok=used.left > 0, found=found, advice=advice)


async def _site(opened: System) -> Check:
    """Tell what keeps us from the site for longer than a moment."""
    breaker = await opened.store.breaker.find(google_books.SITE.name)
    waits = [await opened.store.limiter.peek(one) for one in opened.watches.limits_of(PAGE)]
    soon = opened.clock.now() + MOMENT
    reasons = [one.reason for one in waits if one is not None and one.until > soon]
    if breaker is not None and breaker.state != "closed":
        reasons.append(breaker.reason or "it turned us away")
    if not reasons:
        return Check(name="site", ok=True, found="nothing keeps us from it")
    advice = "it is asked again by itself after a while"
    return Check(name="site", ok=False, found="; ".join(reasons), advice=advice)


async def _jobs(reader: Reader) -> Check:
    states = await queries.list_states(reader)
    ended = [one.job.name for one in states if one.is_exhausted]
    found = f"{len(states)} jobs, {sum(one.job.enabled for one in states)} enabled"
    found += f", exhausted: {', '.join(ended)}" if ended else ""
    advice = "" if states else "`mimawari books job add` or `import` brings some"
    return Check(name="jobs", ok=bool(states), found=found, advice=advice)


async def _mails(opened: System, reader: Reader) -> Check:
    waiting = await mailing.count_waiting(reader, opened.settings)
    bad = [one for one in await mailing.list_mails(reader, 50) if one.state is MailState.FAILED]
    found = f"{waiting:,} books wait; {len(bad)} of the last 50 digests failed"
    advice = "`mimawari books mail status` tells why" if bad else ""
    return Check(name="digests", ok=not bad, found=found, advice=advice)


async def _server(settings: Settings) -> Check:
    """Greet the mail server, and log in where that is set; no mail is sent."""
    try:
        relay = relay_of(settings)
        if relay is None:
            advice = "set MIMAWARI_SMTP_HOST and MIMAWARI_MAIL_FROM to have digests mailed"
            return Check(name="mail server", ok=False, found="none is set", advice=advice)
        await greet(relay)
    except MimawariError as error:
        said = one_line(str(error), most=300)
        advice = "check the MIMAWARI_SMTP_ settings and that the server runs"
        return Check(name="mail server", ok=False, found=said, advice=advice)
    return Check(name="mail server", ok=True, found=f"{relay.host}:{relay.port} answers")
