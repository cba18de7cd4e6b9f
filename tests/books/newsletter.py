"""A digest as it may come: plain books, bare books, and books that mean harm."""

from dataclasses import replace
from datetime import UTC, date, datetime

from mimawari.watches.books.digest import Book, Digest, Language, Section

COVER = "https://books.google.com/books/content?id=abc&printsec=frontcover&img=1&zoom=1"
LONG = (
    "本書は、現場で実際に使われている設計の手法を、豊富な図と演習で順を追って説明します。"
    "はじめに小さな例から始め、次に規模の大きな例へ進みます。「なぜそうするのか」を必ず述べるので、"
    "読み終えたときには自分の仕事にそのまま当てはめられるようになります。"
    "付録には、よくある失敗とその直し方、用語の一覧、そして参考文献を収めました。"
    "初めて学ぶ人にも、長く携わってきた人にも役立つ一冊です。改訂にあたり全章を見直しました。"
    "とくに第三章は書き下ろしです。最後の章では、これからの十年に何が変わり、何が変わらないのかを考えます。"
    "索引つき。本文の例はすべて公開されており、手元で動かしながら読み進めることができます。電子版もあります。"
)
ENGLISH = (
    "A calm and thorough guide to building systems that last. The author has spent thirty years"
    " with teams of every size and tells, without jargon, what worked, what did not, and why. Each"
    " chapter ends with questions for the reader. The second edition adds three chapters on"
    " testing, on the cost of change, and on how to leave a system better than one found it."
)
PLAIN = Book(
    title="つくりながら学ぶ設計の基本",
    subtitle="小さく始めて大きく育てる",
    authors=("山田 太郎", "佐藤 花子"),
    publisher="見本出版",
    published="2026-03-05",
    isbn13="9784000000004",
    description=LONG,
    thumbnail=COVER,
    info_link="http://books.google.co.jp/books?id=abc&dq=a&hl=&source=gbs_api",
)
FOREIGN = Book(
    title="Systems That Last",
    subtitle="Second Edition",
    authors=("Ann Author", "Ben Writer", "Cy Scribe", "Di Penman"),
    publisher="Example Press",
    published="2026-03",
    isbn13="9780306406157",
    description=ENGLISH,
    thumbnail=COVER,
    info_link="https://books.google.com/books?id=def",
)
BARE = Book(title="題名だけの本")
HARMFUL = Book(
    title='<script>alert("1")</script> & \u202eevil\u202c',
    subtitle="one\r\nBcc: eve@example.org\r\n\r\ntwo",
    authors=('"><img src=x onerror=alert(2)>',),
    publisher="{{ 7 * 7 }}{% for x in y %}",
    published="soon",
    isbn13="978<b>",
    description="<p>First.<br>Second &amp; <b>third</b></p><script>alert(3)</script>\x00\ud800",
    thumbnail='https://example.org/"onerror="alert(4)',
    info_link="javascript:alert(5)",
)
WIDE = Book(
    title="とても長い題名" * 20,
    subtitle="Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2,
    authors=("名" * 80,),
    publisher="w" * 90,
    published="2026",
    thumbnail=COVER,
    description="https://example.org/" + "x" * 250,
    info_link="https://example.org/" + "y" * 300,
)


def a_digest(*books: Book, language: Language = "ja") -> Digest:
    """Write down what a digest of some books tells."""
    return Digest(
        sections=(Section(name="consultant-books", books=books or (PLAIN, FOREIGN, BARE)),),
        language=language,
        day=date(2026, 11, 16),
        sent_at=datetime(2026, 11, 16, 8, 30, tzinfo=UTC),
        message_id="<digest-42@example.org>",
        sender="books@example.org",
        recipients=("ann@example.com",),
        unsubscribe="https://example.org/stop?to=ann",
    )


def full_digest(language: Language) -> Digest:
    """Write down a digest of several sections with every kind of book."""
    first = a_digest(PLAIN, FOREIGN, BARE, language=language)
    second = Section(name="設計の本 – " + "section" * 12, books=(WIDE, HARMFUL, PLAIN))
    return replace(first, sections=(*first.sections, Section(name="none", books=()), second))
