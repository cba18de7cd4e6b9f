"""The streams that are always there, by seed and time alone."""

import string
from datetime import UTC, datetime, timedelta

from mimawari.sim.chance import chance_of
from mimawari.sim.sites.youtube.programme import Programme, Shot

ORIGIN_AT = datetime(2020, 1, 1, tzinfo=UTC)
"""What never ends began here."""
BLACK_SECONDS, BLACK_EVERY = 45.0, 420.0
SILENT_SECONDS, SILENT_EVERY = 60.0, 600.0
LATE_FOR = timedelta(minutes=10)
_LETTERS = string.ascii_letters + string.digits + "-_"
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


class Catalogue:
    """Six streams: a healthy one, and one for each thing that a watcher waits for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def list(self, now: datetime) -> tuple[Programme, ...]:
        """List the programmes as they are announced, run or have ended by now."""
        return (
            self._endless("healthy", "【24時間】渋谷スクランブル交差点 ライブカメラ", ()),
            self._endless(
                "black",
                "【定点】くらげ水槽ライブ ときどき消灯",
                (Shot(what="black", start=120.0, end=120.0 + BLACK_SECONDS, every=BLACK_EVERY),),
            ),
            self._endless(
                "silent",
                "作業用BGM 雨の日の喫茶店 24時間配信",
                (
                    Shot(
                        what="silence",
                        start=200.0,
                        end=200.0 + SILENT_SECONDS,
                        every=SILENT_EVERY,
                    ),
                ),
            ),
            self._late(now),
            self._ending(now),
            self._upcoming(now),
        )

    def _endless(self, name: str, title: str, shots: tuple[Shot, ...]) -> Programme:
        starts_at = ORIGIN_AT + timedelta(seconds=self._draw(name, _HOUR))
        return Programme(video_id=self._name(name), title=title, starts_at=starts_at, shots=shots)

    def _late(self, now: datetime) -> Programme:
        scheduled_at = self._begin("late", now, 2 * _HOUR) + 30 * _MINUTE
        return Programme(
            video_id=self._name("late"),
            title="【雑談】今夜もゆるっと配信 たぶん遅れます",
            scheduled_at=scheduled_at,
            starts_at=scheduled_at + LATE_FOR,
            seconds=_HOUR.total_seconds(),
        )

    def _ending(self, now: datetime) -> Programme:
        starts_at = self._begin("ending", now, _HOUR) + 10 * _MINUTE
        return Programme(
            video_id=self._name("ending"),
            title="30分だけ歌います【弾き語り】",
            scheduled_at=starts_at,
            starts_at=starts_at,
            seconds=(30 * _MINUTE).total_seconds(),
            container="fmp4",
        )

    def _upcoming(self, now: datetime) -> Programme:
        starts_at = self._begin("upcoming", now, _DAY) + _DAY
        return Programme(
            video_id=self._name("upcoming"),
            title="【重大発表】明日の配信をお楽しみに",
            scheduled_at=starts_at,
            starts_at=starts_at,
        )

    def _begin(self, name: str, now: datetime, every: timedelta) -> datetime:
        """Return when the round began in which a stream is now."""
        shifted_at = ORIGIN_AT + timedelta(seconds=self._draw(name, every))
        return shifted_at + (now - shifted_at) // every * every

    def _draw(self, name: str, most: timedelta) -> int:
        return chance_of("live", self._seed, name, "shift").randrange(int(most.total_seconds()))

    def _name(self, name: str) -> str:
        return "".join(chance_of("live", self._seed, name, "id").choices(_LETTERS, k=11))
