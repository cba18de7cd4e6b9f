"""The ports with Redis beside SQL: SQL is the truth, Redis says quickly where to look."""

from mimawari.store.redis.store import RedisStore

__all__ = ["RedisStore"]
