"""A digest on its way to a real mail server: sent once, and what became of it is known."""

import asyncio
import signal
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aiosmtpd.smtp import Envelope, Session

from mimawari.errors import JobError, Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import BACKOFF, Deliverer, in_the_log
from mimawari.kernel.values import Event
from mimawari.net.envelope import REPLY_FOR, Refused, Unconfirmed
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.watches.books import mailing
from mimawari.watches.books.deliveries import SPARE, DigestDestination, Taken
from mimawari.watches.books.mailing import SCHEME, Mail, MailState
from tests.books.waiting import (
    add_job,
    find_books,
    find_mail,
    list_told,
    now_of,
    put_digests,
    settings_for,
    take_event,
)
from tests.conftest import Databases
from tests.net.post_office import ANN, BEN, CLOSE, Office, open_office, open_teller
from tests.net.sealing import kill_with_seal

DAY = timedelta(days=1)


async def a_digest(store: SqlStore, **given: Any) -> Event:
    """Have two books found and put into a digest, and take its event."""
    await add_job(store, **given)
    await find_books(store, "new", 1, 2)
    assert await put_digests(store, settings_for()) == [2]
    return await take_event(store)


def deliverer_to(store: SqlStore, settings: Settings) -> Deliverer:
    """Make a deliverer of digests."""
    clock = store.database.clock
    return Deliverer(
        store, clock, {**in_the_log(), SCHEME: DigestDestination(store, clock, settings)}
    )


async def deliver(store: SqlStore, event: Event, settings: Settings) -> Mail:
    """Deliver an event, and tell how its mail stands."""
    await DigestDestination(store, store.database.clock, settings).deliver(event)
    return await find_mail(store, event)


async def fail(store: SqlStore, event: Event, settings: Settings, error: type[JobError]) -> Mail:
    """Deliver an event in vain, and tell how its mail stands."""
    with pytest.raises(error):
        await deliver(store, event, settings)
    return await find_mail(store, event)


async def test_a_digest_is_sent_once_though_its_event_comes_again(store: SqlStore) -> None:
    event = await a_digest(store)
    async with open_office() as office:
        for _ in range(3):
            mail = await deliver(store, event, settings_for(office))
            assert (mail.state, mail.reason, mail.attempts) == (MailState.SENT, None, 1)
    (taken,) = office.mails
    assert taken.recipients == [ANN]
    assert f"Message-ID: <books-{mail.id}@example.org>\r\n".encode() in taken.content


async def test_a_server_that_refuses_for_now_is_asked_again_and_gets_the_same_mail(
    store: SqlStore,
) -> None:
    event = await a_digest(store)
    async with open_teller(end="451 greylisted") as teller:
        mail = await fail(store, event, settings_for(teller), Transient)
    assert mail.state is MailState.PENDING
    assert mail.reason is not None
    assert "(451): greylisted" in mail.reason
    assert await put_digests(store, settings_for()) == []
    async with open_office() as office:
        office.refused[ANN] = "450 busy"
        mail = await fail(store, event, settings_for(office), Transient)
        assert mail.state is MailState.PENDING
        assert "450" in (mail.reason or "")
        office.refused.clear()
        mail = await deliver(store, event, settings_for(office))
    assert (mail.state, mail.reason) == (MailState.SENT, None)
    # All of it is the same, also its Message-ID.
    assert [taken.content for taken in office.mails] == [bytes(teller.body)]


async def test_books_of_a_mail_that_is_refused_go_into_the_next_one(
    store: SqlStore, clock: VirtualClock
) -> None:
    event = await a_digest(store)
    async with open_office() as office:
        office.refused[ANN] = "550 no such user"
        mail = await fail(store, event, settings_for(office), Refused)
        assert mail.state is MailState.FAILED
        assert "(550): every recipient: no such user" in (mail.reason or "")
        office.refused.clear()
        assert (await deliver(store, event, settings_for(office))).state is MailState.FAILED
        assert office.mails == []
        await clock.advance(DAY)
        await find_books(store, "new", 3)
        assert await put_digests(store, settings_for()) == [3]
    assert (await list_told(store))[-1] == ((ANN,), {"new": [1, 2, 3]})


async def test_who_is_refused_for_now_at_the_last_attempt_gets_the_books_in_the_next_mail(
    store: SqlStore, clock: VirtualClock
) -> None:
    """The deliverer and the mail agree on which attempt is the last."""
    await add_job(store)
    await find_books(store, "new", 1, 2)
    await put_digests(store, settings_for())
    async with open_office() as office:
        office.refused[ANN] = "450 busy"
        deliverer = deliverer_to(store, settings_for(office))
        for _ in range(len(BACKOFF)):
            await deliverer.tick()
            assert (await store.outbox.counts())["pending"] == 1
            await clock.advance(DAY)
        await deliverer.tick()
    assert (await store.outbox.counts())["failed"] == 1
    async with store.read() as reader:
        (mail,) = await mailing.list_mails(reader, 2)
    assert (mail.state, mail.attempts) == (MailState.FAILED, len(BACKOFF) + 1)
    assert await put_digests(store, settings_for()) == [2]


async def test_a_mail_that_one_of_two_gets_is_sent_and_says_who_does_not(store: SqlStore) -> None:
    event = await a_digest(store, recipients=(ANN, BEN))
    async with open_office() as office:
        office.refused[BEN] = "550 no such user"
        mail = await deliver(store, event, settings_for(office))
    assert mail.state is MailState.SENT
    assert mail.reason == f"not taken for {BEN}: no such user"
    assert [taken.recipients for taken in office.mails] == [[ANN]]
    assert await put_digests(store, settings_for()) == []


async def test_a_mail_whose_end_was_begun_is_left_alone_until_its_answer_must_have_come(
    store: SqlStore, clock: VirtualClock
) -> None:
    event = await a_digest(store)
    async with store.edit() as tx:
        assert await mailing.begin_end(tx, await find_mail(store, event), now_of(store))
    async with open_office() as office:
        await clock.advance(REPLY_FOR + SPARE - timedelta(seconds=1))
        mail = await fail(store, event, settings_for(office), Transient)
        assert mail.state is MailState.ENDING
        await clock.advance(timedelta(seconds=1))
        mail = await deliver(store, event, settings_for(office))
        assert mail.state is MailState.UNCONFIRMED
        assert "the process died" in (mail.reason or "")
        assert (await deliver(store, event, settings_for(office))) == mail
    assert office.mails == []
    assert await put_digests(store, settings_for()) == []


class MeetingOffice(Office):
    """A mail server that takes nobody's recipient before two have come."""

    def __init__(self) -> None:
        super().__init__()
        self._meeting = asyncio.Barrier(2)

    async def handle_RCPT(  # noqa: N802 - the server's own name
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Take a recipient once both are here."""
        await self._meeting.wait()
        return await super().handle_RCPT(server, session, envelope, address, options)


async def test_two_who_deliver_the_same_mail_at_once_send_it_once(
    store: SqlStore, engine: str, databases: Databases, clock: VirtualClock
) -> None:
    event = await a_digest(store)
    other = SqlStore(await databases.kept(engine), clock)
    async with open_office(office=MeetingOffice()) as office:
        settings = settings_for(office)
        second = replace(event, attempt=2)
        both = (deliver(store, event, settings), deliver(other, second, settings))
        ended = await asyncio.gather(*both, return_exceptions=True)
        assert {type(one) for one in ended} == {Mail, Taken}
        # The second comes again, and finds it done.
        assert (await deliver(other, second, settings)).state is MailState.SENT
    await other.close()
    assert len(office.mails) == 1


async def test_who_comes_late_with_a_failure_does_not_open_a_mail_that_another_ends(
    store: SqlStore,
) -> None:
    event = await a_digest(store)
    async with store.edit() as tx:
        first = replace(await find_mail(store, event), attempts=1)
        assert await mailing.begin_end(tx, replace(first, attempts=2), now_of(store))
        assert not await mailing.mark(tx, first, now_of(store))
    assert (await find_mail(store, event)).state is MailState.ENDING


async def begin_end_and_die(store: SqlStore, event: Event, *, is_broken: bool) -> None:
    """Leave a mail as a process does that is killed after it began to end it."""
    mail = replace(await find_mail(store, event), attempts=event.attempt)
    async with store.edit() as tx:
        assert await mailing.begin_end(tx, mail, now_of(store))
    path = settings_for().data / "mail" / f"{mail.id}.{mail.attempts}"
    assert await kill_with_seal(path, is_broken=is_broken) == -signal.SIGKILL


async def test_a_mail_whose_process_died_before_its_last_line_is_sent_by_the_next_one_at_once(
    store: SqlStore,
) -> None:
    event = await a_digest(store)
    await begin_end_and_die(store, event, is_broken=False)
    async with open_office() as office:
        mail = await deliver(store, replace(event, attempt=2), settings_for(office))
        assert (mail.state, mail.attempts) == (MailState.SENT, 2)
        assert len(office.mails) == 1
    assert list((settings_for().data / "mail").iterdir()) == []


async def test_a_mail_whose_process_died_after_its_last_line_is_not_sent_again(
    store: SqlStore,
) -> None:
    event = await a_digest(store)
    await begin_end_and_die(store, event, is_broken=True)
    async with open_office() as office:
        mail = await deliver(store, replace(event, attempt=2), settings_for(office))
    assert mail.state is MailState.UNCONFIRMED
    assert office.mails == []
    assert list((settings_for().data / "mail").iterdir()) == []


async def test_a_mail_waits_where_its_server_is_unset_or_away(store: SqlStore) -> None:
    event = await a_digest(store)
    mail = await fail(store, event, settings_for(smtp_host=""), Transient)
    assert mail.state is MailState.PENDING
    assert "set MIMAWARI_SMTP_HOST" in (mail.reason or "")
    async with open_office() as gone:
        pass
    mail = await fail(store, event, settings_for(gone), Transient)
    assert mail.state is MailState.PENDING
    assert "could not be spoken to" in (mail.reason or "")
    async with open_office() as office:
        assert (await deliver(store, event, settings_for(office))).state is MailState.SENT


async def test_a_mail_that_nobody_answered_to_is_not_sent_again(store: SqlStore) -> None:
    event = await a_digest(store)
    async with open_teller(end=CLOSE) as teller:
        mail = await fail(store, event, settings_for(teller), Unconfirmed)
    assert teller.has_ended
    assert mail.state is MailState.UNCONFIRMED
    assert "may have been delivered" in (mail.reason or "")
    async with open_office() as office:
        assert (await deliver(store, event, settings_for(office))) == mail
    assert office.mails == []
    assert await put_digests(store, settings_for()) == []


async def test_books_that_are_reset_are_sent_again_in_a_mail_of_its_own(store: SqlStore) -> None:
    await add_job(store)
    await find_books(store, "new", 1, 2)
    async with open_office() as office:
        deliverer = deliverer_to(store, settings_for(office))
        assert await put_digests(store, settings_for()) == [2]
        await deliverer.tick()
        async with store.edit() as tx:
            assert await mailing.reset(tx, "new") == 2
        assert await put_digests(store, settings_for()) == [2]
        await deliverer.tick()
    ids = {taken.content.split(b"Message-ID: ")[1].split(b"\r\n")[0] for taken in office.mails}
    assert len(ids) == len(office.mails) == 2


async def test_a_mail_whose_books_were_taken_out_before_it_was_sent_is_none(
    store: SqlStore,
) -> None:
    event = await a_digest(store)
    async with store.edit() as tx:
        await mailing.reset(tx, "new")
    async with open_office() as office:
        mail = await deliver(store, event, settings_for(office))
    assert mail.state is MailState.FAILED
    assert office.mails == []
    assert await put_digests(store, settings_for()) == [2]
