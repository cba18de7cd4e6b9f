"""A DNS whose answers a test decides, and hosts that must lead nowhere."""

from collections.abc import Sequence
from socket import EAI_NONAME, gaierror

PUBLIC = "93.184.215.14"
PUBLIC_V6 = "2606:4700:4700::1111"


class Dns:
    """Answers each name with what it was told, one answer after another; the last one stays."""

    def __init__(self, answers: dict[str, list[list[str]]] | None = None) -> None:
        self._answers = answers or {}
        self.asked: list[str] = []

    async def __call__(self, name: str, _port: int, /) -> Sequence[str]:
        """Return the next answer for a name."""
        self.asked.append(name)
        answers = self._answers.get(name)
        if not answers:
            raise gaierror(EAI_NONAME, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def hostile_dns() -> Dns:
    """Make a DNS that leads the names below to this machine."""
    return Dns(
        {
            "loop.example": [["127.0.0.1"]],
            "a.loop.example": [["127.0.0.1"]],
            "six.example": [["::1"]],
            "any.example": [["0.0.0.0"]],
            "mapped.example": [["::ffff:127.0.0.1"]],
            "scoped.example": [["fe80::1%lo"]],
            "first.example": [["127.0.0.1", PUBLIC]],
            "last.example": [[PUBLIC, PUBLIC_V6, "127.0.0.1"]],
            "xn--bcher-kva.example": [["127.0.0.1"]],
            "127.0.0.1.nip.example": [["127.0.0.1"]],
            "no-address.example": [["127.0.0.1 "]],
            **{name: [["127.0.0.1"]] for name in ("localhost", "foo.localhost", "a.b.localhost")},
        }
    )


_ADDRESSES = """
127.0.0.1 127.0.0.2 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1
100.127.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.9 192.0.0.255
192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7
203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:10.0.0.1]
[::127.0.0.1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::1]
[2002:7f00:1::] [2001::1] [2001:10::1] [2001:20::1] [2001:db8::1] [3fff::1] [fc00::1]
[fd12:3456::1] [fe80::1] [fec0::1] [ff02::1] [5f00::1] [100::1]
"""
ADDRESSES = _ADDRESSES.split()

_DISGUISES = """
0 1 127.1 127.0.1 2130706433 017700000001 0x7f000001 0X7F000001 0x7f.1 0x7f.0.0.1 0x 127.0x
0177.0.0.1 0177.1 127.0.0.01 0127.0.0.1 127.0.0.1. 127.0.0.0x1 127.0.0.256 1.2.3.4.5 4294967297
1.2.3 localhost.1 a.0x7f
"""
DISGUISES = _DISGUISES.split()

WIDE = [
    "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "127\u30020\u30020\u30021",
    "127\uff0e0\uff0e0\uff0e1",
    "127\uff610\uff610\uff611",
    "\u2460\u2461\u2466.0.0.1",
    "\u0661\u0662\u0667.0.0.1",
    "\uff10x7f000001",
    "\uff4cocalhost",
    "loop\u3002example",
    "b\u00fccher.example",
]

_NAMES = """
localhost LOCALHOST localhost. foo.localhost a.b.LocalHost. loop.example loop.example.
LOOP.Example six.example any.example mapped.example scoped.example first.example last.example
127.0.0.1.nip.example no-address.example
"""
NAMES = _NAMES.split()

JUNK = [
    "",
    ".",
    "..",
    "127.0.0.1..",
    "localhost..",
    ".localhost",
    "a..example",
    "loop.example%00",
    "127.0.0.1%00.example",
    "127.0.0.1%2eexample",
    "%31%32%37.0.0.1",
    "user@127.0.0.1",
    "93.184.215.14@127.0.0.1",
    "93.184.215.14\\@127.0.0.1",
    "127.0.0.1 93.184.215.14",
    "loop.example\x00.com",
    "loop.example\r\nHost: a",
    "loop.example\t",
    "[127.0.0.1]",
    "[::1%lo]",
    "[::1%25lo]",
    "[fe80::1%25lo]",
    "[::1",
    "::1]",
    "[]",
    "[[::1]]",
    "*.example",
    "a" * 64 + ".example",
    ".".join(["a" * 60] * 5),
]

FORBIDDEN = [*ADDRESSES, *DISGUISES, *WIDE, *NAMES, *JUNK]

_NEIGHBOURS = """
1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.215.14 100.63.255.255 100.128.0.0
126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0
191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 192.31.196.1 192.52.193.1 192.88.98.255
192.88.100.0 192.167.255.255 192.169.0.0 192.175.48.1 198.17.255.255 198.20.0.0 198.51.99.255
198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
2000:: 2001:200:: 2001:db7:ffff:: 2001:db9:: 2001:ffff:: 2003:: 2606:4700:4700::1111
2620:4f:8000::1 2a00:1450:4001::1 3ffe:ffff:: 3fff:1000::
3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
"""
NEIGHBOURS = _NEIGHBOURS.split()
