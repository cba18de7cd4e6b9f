"""The settings of the streams watch."""

import re
from datetime import timedelta
from typing import Annotated, Literal, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from mimawari.settings.types import Address, Duration, SecretWord, Whole, Words, named

PLATFORMS = ("youtube", "twitch", "niconico", "hls")
"""Where streams may be: those of which a page is resolved, and plain addresses of playlists."""


def _resolver(value: str) -> str:
    if value and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", value):
        raise ValueError("must be an address like https://host/path, without a question mark")
    return value


def _platforms(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value or not set(value) <= set(PLATFORMS):
        raise ValueError(f"must be some of {', '.join(PLATFORMS)}, comma-separated")
    return value


def _names(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(re.fullmatch("[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name) for name in value):
        raise ValueError("must be names of Secrets like my-registry, comma-separated")
    return value


PullSecrets = Annotated[Words, AfterValidator(_names)]


class StreamsSettings(BaseSettings):
    """How live streams are watched, and how whoever asked for it is told."""

    streams_resolver_url: Annotated[str, AfterValidator(_resolver)] = Field(
        default="",
        validation_alias=named("MIMAWARI_STREAMS_RESOLVER_URL"),
        description="Whom to ask whether a video is live, as URL?v=ID; empty means yt-dlp.",
    )
    streams_resolves: Whole = Field(
        default=300,
        ge=1,
        le=100_000,
        validation_alias=named("MIMAWARI_STREAMS_RESOLVES"),
        description="How many times an hour it is asked at the most whether a video is live.",
    )
    streams_most: Whole = Field(
        default=50,
        ge=1,
        le=10_000,
        validation_alias=named("MIMAWARI_STREAMS_MOST", "MAX_MONITORS"),
        description="How many streams may be monitored at once.",
    )
    streams_platforms: Annotated[Words, AfterValidator(_platforms)] = Field(
        default=("youtube",),
        validation_alias=named("MIMAWARI_STREAMS_PLATFORMS", "STREAMS_PLATFORMS"),
        description="Where streams may be, comma-separated: youtube, twitch, niconico, hls.",
    )
    streams_reconcile_for: Duration = Field(
        default=timedelta(seconds=30),
        validation_alias=named("MIMAWARI_STREAMS_RECONCILE_FOR", "GATEWAY_RECONCILE_TIMEOUT"),
        description="How long a start may compare what is monitored with what runs.",
    )
    webhook_key: SecretStr = Field(
        default=SecretStr(""),
        validation_alias=named("MIMAWARI_WEBHOOK_KEY", "WEBHOOK_SIGNING_KEY"),
        description="The secret that webhooks are signed with; nothing is monitored without one.",
    )
    internal_key: SecretWord = Field(
        default=SecretStr(""),
        validation_alias=named("MIMAWARI_INTERNAL_KEY", "INTERNAL_API_KEY"),
        description="The key of the internal API, of which the tokens of pods are made;"
        " empty means that it is not served.",
    )
    internal_host: str = Field(
        default="127.0.0.1",
        validation_alias=named("MIMAWARI_INTERNAL_HOST"),
        description="The address the internal API listens on.",
    )
    internal_port: Whole = Field(
        default=8086,
        ge=0,
        le=65535,
        validation_alias=named("MIMAWARI_INTERNAL_PORT"),
        description="The port the internal API listens on; 0 takes a free one.",
    )
    streams_runner: Literal["process", "kubernetes"] = Field(
        default="process",
        validation_alias=named("MIMAWARI_STREAMS_RUNNER"),
        description="Who runs monitors: the processes of this installation, or pods of Kubernetes.",
    )
    streams_per_pod: Whole = Field(
        default=1,
        ge=1,
        le=50,
        validation_alias=named("MIMAWARI_STREAMS_PER_POD"),
        description="How many streams share one pod.",
    )
    gateway_url: Address = Field(
        default="http://stream-monitor-internal:8086",
        validation_alias=named("MIMAWARI_GATEWAY_URL"),
        description="Where pods find the internal API.",
    )
    kubernetes_namespace: Annotated[
        str, Field(pattern="^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")
    ] = Field(
        default="",
        validation_alias=named("MIMAWARI_KUBERNETES_NAMESPACE"),
        description="The namespace of the pods; empty means that of the account.",
    )
    kubernetes_image: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,500}$")] = Field(
        default="stream-monitor:latest",
        validation_alias=named("MIMAWARI_KUBERNETES_IMAGE"),
        description="The image of the pods.",
    )

    kubernetes_pull_secrets: PullSecrets = Field(
        default=(),
        validation_alias=named("MIMAWARI_KUBERNETES_PULL_SECRETS"),
        description="The Secrets by which the pods' image may be fetched, with commas between.",
    )
    kubernetes_start_for: Annotated[Duration, Ge(timedelta(seconds=10)), Le(timedelta(days=1))] = (
        Field(
            default=timedelta(minutes=10),
            validation_alias=named("MIMAWARI_KUBERNETES_START_FOR"),
            description="How long a pod may be pending before its monitors end as failed.",
        )
    )

    @model_validator(mode="after")
    def _pods_can_report(self) -> Self:
        if self.streams_runner == "kubernetes" and not self.internal_key.get_secret_value():
            raise ValueError(
                "MIMAWARI_STREAMS_RUNNER=kubernetes needs INTERNAL_API_KEY, by which pods report"
            )
        return self
