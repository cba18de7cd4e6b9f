"""Brings digests from the outbox to the mail server."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from mimawari.errors import BadInput, JobError, Transient
from mimawari.kernel.deliverer import BACKOFF
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.values import Event
from mimawari.net.envelope import REPLY_FOR, Envelope, Sent, Unconfirmed, relay_of
from mimawari.net.mail import send
from mimawari.net.seal import Found, beside_the_loop, look_at_seal, remove_seals, set_seal
from mimawari.settings import Settings
from mimawari.text import one_line
from mimawari.watches.books import mailing
from mimawari.watches.books.digest import Section, write_digest
from mimawari.watches.books.mailing import Mail, MailState
from mimawari.watches.books.notifications import tell_end

SPARE = timedelta(minutes=1)
DIED = (
    "the process died while the mail was being ended: it was most likely delivered, and is not"
    " sent again; `mimawari books mail reset` sends a job's books anew"
)


class Taken(Transient):
    """Another process is at the same mail, and further."""


class DigestDestination:
    """Sends each digest once: that it is being ended is kept before the server can deliver it."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._folder = settings.data / "mail"

    async def deliver(self, event: Event) -> None:
        """Send the mail, unless that was done or begun before."""
        async with self._store.read() as reader:
            mail = await mailing.find_mail(reader, str(event.body.get("mail_id")))
            sections = await mailing.list_sections(reader, mail.id) if mail else ()
        match mail:
            case Mail(state=MailState.ENDING):
                mail = await self._judge(mail)
        match mail:
            case Mail(state=MailState.PENDING) if sections:
                await self._attempt(replace(mail, attempts=event.attempt), sections)
            case Mail(state=MailState.PENDING):
                await self._mark(mail, MailState.FAILED, "its books were taken out again")

    async def give_up(self, event: Event, reason: str) -> None:
        """Record that a mail is not sent; its books stay with it, as one of them may be why."""
        async with self._store.read() as reader:
            mail = await mailing.find_mail(reader, str(event.body.get("mail_id")))
        if mail is not None and mail.state is MailState.ENDING:
            mail = await self._judge(mail)
        if mail is None or mail.state is not MailState.PENDING:
            return
        ended = replace(
            mail, state=MailState.FAILED, reason=one_line(reason), attempts=event.attempt
        )
        async with self._store.edit() as tx:
            if await mailing.mark(tx, ended, self._clock.now()):
                tell_end(tx, ended)

    async def _judge(self, mail: Mail) -> Mail:
        """Decide about a mail whose end was begun: whoever did it may still wait for the reply.

        One who died before the last line was written has delivered nothing, so another may; where
        nobody can know that, the mail is taken for delivered.
        """
        seal = await beside_the_loop(lambda: look_at_seal(self._seal_of(mail)))
        until = mail.changed_at + REPLY_FOR + SPARE
        if seal in {Found.NOTHING, Found.HELD} and self._clock.now() < until:
            raise Transient("another process waits for the mail server's answer to it", until=until)
        if seal is Found.WHOLE:
            return await self._mark(mail, MailState.PENDING, None)
        return await self._mark(mail, MailState.UNCONFIRMED, DIED)

    def _seal_of(self, mail: Mail) -> Path:
        """Name the seal of one attempt, of which nobody else makes the same."""
        return self._folder / f"{mail.id}.{mail.attempts}"

    async def _attempt(self, mail: Mail, sections: tuple[Section, ...]) -> None:
        try:
            sent = await self._send(mail, sections)
        except Taken:
            raise
        except Unconfirmed as error:
            await self._mark(mail, MailState.UNCONFIRMED, str(error))
            raise
        except Transient as error:
            is_last = mail.attempts > len(BACKOFF)
            await self._mark(mail, MailState.FAILED if is_last else MailState.PENDING, str(error))
            raise
        except (JobError, BadInput) as error:
            await self._mark(mail, MailState.FAILED, str(error))
            raise
        refused = ", ".join(f"{one.recipient}: {one.reason}" for one in sent.refused)
        await self._mark(mail, MailState.SENT, f"not taken for {refused}" if refused else None)

    async def _send(self, mail: Mail, sections: tuple[Section, ...]) -> Sent:
        relay = relay_of(self._settings)
        if relay is None:
            raise Transient("no mail server is set any more; set MIMAWARI_SMTP_HOST")
        message = write_digest(mailing.make_digest(mail, sections, self._settings))

        async def begin_end() -> None:
            async with self._store.edit() as tx:
                if not await mailing.begin_end(tx, mail, self._clock.now()):
                    raise Taken("another process sends this mail")

        sender, recipients = self._settings.mail_from, mail.recipients
        envelope = Envelope(sender=sender, recipients=recipients, message=message)
        async with set_seal(self._seal_of(mail)) as seal:
            return await send(relay, envelope, begin_end, seal.break_open if seal else None)

    async def _mark(self, mail: Mail, state: MailState, reason: str | None) -> Mail:
        """Keep what became of a mail; the books of one that failed go into the next one."""
        found = replace(mail, state=state, reason=reason and one_line(reason))
        if state is not MailState.PENDING:
            # Before the commit, since nobody comes to a mail again whose end is kept.
            with suppress(Transient):
                await beside_the_loop(lambda: remove_seals(self._folder, mail.id))
        async with self._store.edit() as tx:
            is_open = await mailing.mark(tx, found, self._clock.now())
            if is_open:
                tell_end(tx, found)
            if is_open and state is MailState.FAILED:
                await mailing.free_books(tx, mail.id)
        return found
