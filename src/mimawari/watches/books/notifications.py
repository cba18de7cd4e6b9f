"""What people may be told of digests of books."""

from mimawari.kernel.ports import Tx
from mimawari.kernel.telling import Facts, Telling, tell
from mimawari.watches.books.mailing import Mail, MailState

SENT, FAILED = "books.mail_sent", "books.mail_failed"


def tell_end(tx: Tx, mail: Mail) -> None:
    """Tell what became of a mail, unless it goes on; its recipients are nobody else's business."""
    if mail.state in {MailState.SENT, MailState.UNCONFIRMED, MailState.FAILED}:
        kind = FAILED if mail.state is MailState.FAILED else SENT
        facts = {"mail_id": mail.id, "books": mail.books, "reason": mail.reason}
        tell(tx, "books:mail", kind, facts)


def _sent(facts: Facts, language: str) -> str:
    if language == "ja":
        return f"新刊{facts['books']}冊のメールを送りました"
    return f"a digest of {facts['books']} new books was sent"


def _failed(facts: Facts, language: str) -> str:
    if language == "ja":
        return f"新刊{facts['books']}冊のメールを送れませんでした: {facts['reason']}"
    return f"the digest of {facts['books']} new books could not be sent: {facts['reason']}"


def _path(_facts: Facts) -> str:
    return "/books/mail"


TELLINGS = (
    Telling(kind=SENT, ja="新刊メールの送信", en="digest sent", line=_sent, path=_path),
    Telling(kind=FAILED, ja="新刊メールの失敗", en="digest failed", line=_failed, path=_path),
)
