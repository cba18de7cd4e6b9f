"""Cuts a transport stream of any length into pieces that can each be decoded alone."""

from collections.abc import Iterator

PACKET, SYNC = 188, 0x47
LEAST_SECONDS = 2.0
MOST_JUMP = 10.0
"""A clock that goes on by more than this has jumped."""
MOST_BYTES = 32 * 1024 * 1024
_TICKS = 90_000
_PAT = 0
_VIDEO = {0x01, 0x02, 0x10, 0x1B, 0x24, 0x33}
"""Types of streams that are pictures: MPEG-1 to 4, H.264, H.265 and H.266."""
_HAS_FIELD, _HAS_PAYLOAD = 0x20, 0x10
_STARTS, _IS_KEY, _HAS_TIME = 0x40, 0x40, 0x80


class TsCutter:
    """Takes a stream as it is read, and gives it back in pieces that begin with a key frame."""

    def __init__(self, least_seconds: float = LEAST_SECONDS) -> None:
        self._least = least_seconds
        self._rest = b""
        self._tables: dict[int, bytes] = {}
        self._pmt: int | None = None
        self._lead: int | None = None
        self._is_video = False
        self._pieces: list[bytearray] = [bytearray()]
        self._first = 0
        self._homes: dict[int, int] = {}
        self._since: float | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take some more bytes, and yield the pieces that are whole by now."""
        body = self._rest + chunk
        at = 0
        while at + PACKET <= len(body):
            if body[at] != SYNC:
                # Lost among bytes that are no packet: go on where packets follow each other.
                at = _find_sync(body, at + 1)
                continue
            self._take(body[at : at + PACKET])
            at += PACKET
            yield from self._give()
        self._rest = body[at:]

    def finish(self) -> Iterator[bytes]:
        """Yield what is left."""
        for piece in self._pieces:
            if len(piece) > sum(map(len, self._tables.values())):
                yield bytes(piece)
        self._pieces = []

    def _give(self) -> Iterator[bytes]:
        """Yield pieces to which nothing comes any more: a unit stays where it began."""
        while len(self._pieces) > 1:
            is_done = all(home > self._first for home in self._homes.values())
            if not is_done and len(self._pieces) == 2:  # noqa: PLR2004 - the old and the new one
                return
            yield bytes(self._pieces.pop(0))
            self._first += 1

    def _take(self, packet: bytes) -> None:
        pid = (packet[1] & 0x1F) << 8 | packet[2]
        starts = bool(packet[1] & _STARTS)
        if pid in {_PAT, self._pmt}:
            self._note_table(pid, packet, starts=starts)
            self._pieces[-1] += packet
            return
        if starts:
            if pid == self._lead and self._is_due(packet):
                self._pieces.append(bytearray(b"".join(self._tables.values())))
            self._homes[pid] = self._newest
        home = max(self._homes.get(pid, self._newest), self._first)
        self._pieces[home - self._first] += packet

    @property
    def _newest(self) -> int:
        return self._first + len(self._pieces) - 1

    def _is_due(self, packet: bytes) -> bool:
        """Say whether a new piece begins with this unit."""
        at = _find_time(packet)
        if at is None or (self._is_video and not _is_key(packet)):
            return len(self._pieces[-1]) > MOST_BYTES
        since, self._since = self._since, at if self._since is None else self._since
        if since is None:
            return False
        if not 0 <= at - since < max(MOST_JUMP, self._least) or at - since >= self._least:
            self._since = at
            return True
        return len(self._pieces[-1]) > MOST_BYTES

    def _note_table(self, pid: int, packet: bytes, *, starts: bool) -> None:
        self._tables[pid] = packet if starts else self._tables.get(pid, b"") + packet
        payload = _payload(packet)
        # A table begins behind as many bytes as its first one says.
        table = payload[1 + payload[0] :] if starts and payload else b""
        if pid == _PAT:
            self._pmt = _find_pmt(table) or self._pmt
        elif self._lead is None:
            self._lead, self._is_video = _find_lead(table)


def _find_sync(body: bytes, at: int) -> int:
    while (at := body.find(SYNC, at)) >= 0:
        if at + PACKET >= len(body) or body[at + PACKET] == SYNC:
            return at
        at += 1
    return len(body)


def _payload(packet: bytes) -> bytes:
    if not packet[3] & _HAS_PAYLOAD:
        return b""
    return packet[5 + packet[4] :] if packet[3] & _HAS_FIELD else packet[4:]


def _is_key(packet: bytes) -> bool:
    return bool(packet[3] & _HAS_FIELD and packet[4] and packet[5] & _IS_KEY)


def _find_time(packet: bytes) -> float | None:
    """Read when a unit is shown, in seconds of the stream's clock."""
    unit = _payload(packet)
    if unit[:3] != b"\0\0\1" or len(unit) < 14 or not unit[7] & _HAS_TIME:  # noqa: PLR2004
        return None
    ticks = (unit[9] >> 1 & 7) << 30 | int.from_bytes(unit[10:12]) >> 1 << 15
    return (ticks | int.from_bytes(unit[12:14]) >> 1) / _TICKS


def _find_pmt(table: bytes) -> int | None:
    for at in range(8, len(table) - 3, 4):
        number, pid = int.from_bytes(table[at : at + 2]), int.from_bytes(table[at + 2 : at + 4])
        if number:
            return pid & 0x1FFF
    return None


def _find_lead(table: bytes) -> tuple[int | None, bool]:
    """Find by which stream to cut: the picture, or else the first one."""
    if len(table) < 12:  # noqa: PLR2004 - what comes before the streams
        return None, False
    end = min(3 + (int.from_bytes(table[1:3]) & 0x0FFF) - 4, len(table))
    at = 12 + (int.from_bytes(table[10:12]) & 0x0FFF)
    found: list[tuple[int, int]] = []
    while at + 5 <= end:
        found.append((table[at], int.from_bytes(table[at + 1 : at + 3]) & 0x1FFF))
        at += 5 + (int.from_bytes(table[at + 3 : at + 5]) & 0x0FFF)
    video = next((pid for kind, pid in found if kind in _VIDEO), None)
    if video is not None:
        return video, True
    return (found[0][1] if found else None), False
