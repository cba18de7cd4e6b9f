"""What a pod that runs monitors is: its name, its labels and all that it is given."""

from collections.abc import Mapping
from typing import Any

from mimawari.kernel.rights import make_token
from mimawari.settings import DEFAULTS, Settings, names_of
from mimawari.watches.streams.models import Monitor
from mimawari.watches.streams.state import dump_config

LABELS = {"app": "stream-monitor"}
LABEL_MONITOR = "monitor-id"
PREFIX = "stream-monitor-"
FOLDER = "/tmp/segments"  # noqa: S108 - a volume of the pod's own
PORT = 8080
GRACE_SECONDS = 30
KEY = "INTERNAL_API_KEY"
PASSED_ON = (
    *("log_level", "zone", "contact", "allow_hosts", "robots_ignore"),
    *("streams_resolver_url", "streams_resolves", "streams_platforms", "streams_per_pod"),
    *("time_scale", "time_anchor"),
)
"""Settings of the gateway that its pods go by too, where they are not the usual ones."""


def name_pod(monitor_id: str) -> str:
    """Name the pod of a monitor, or of the first of several."""
    return f"{PREFIX}{monitor_id}"


def first_of(pod_name: str) -> str:
    """Tell the monitor that a pod is named after."""
    return pod_name.removeprefix(PREFIX)


def token_of(pod_name: str, settings: Settings) -> str:
    """Return the token of a pod, computed from the internal key and never stored."""
    return make_token(settings.internal_key.get_secret_value().encode(), pod_name)


def make_pod(monitor: Monitor, settings: Settings) -> Mapping[str, Any]:
    """Make the pod of a monitor; nothing in it leads to a database."""
    container = {
        "name": "monitor",
        "image": settings.kubernetes_image,
        "command": ["mimawari", "monitor"],
        "env": _env(monitor, settings),
        "volumeMounts": [{"name": "workdir", "mountPath": FOLDER}],
        "resources": {
            "requests": {"memory": "256Mi", "cpu": "100m"},
            "limits": {"memory": "512Mi", "cpu": "500m"},
        },
        "ports": [{"name": "health", "containerPort": PORT}],
        "livenessProbe": _probe("/healthz", every=30),
        "readinessProbe": _probe("/readyz", every=10),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_pod(monitor.id),
            "labels": {**LABELS, LABEL_MONITOR: monitor.id},
        },
        "spec": {
            "volumes": [{"name": "workdir", "emptyDir": {}}],
            "containers": [container],
            "imagePullSecrets": [{"name": name} for name in settings.kubernetes_pull_secrets],
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            # It asks nothing of the cluster.
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        },
    }


def _probe(path: str, every: int) -> Mapping[str, Any]:
    return {
        "httpGet": {"path": path, "port": PORT},
        "periodSeconds": every,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    }


def _env(monitor: Monitor, settings: Settings) -> list[Mapping[str, Any]]:
    given = {
        "MONITOR_ID": monitor.id,
        "STREAM_URL": monitor.stream_url,
        "CALLBACK_URL": monitor.callback_url,
        "CONFIG_JSON": dump_config(monitor.config),
        KEY: token_of(name_pod(monitor.id), settings),
        "MIMAWARI_GATEWAY_URL": settings.gateway_url,
        "MIMAWARI_PORT": str(PORT),
        "TMPDIR": FOLDER,
        **_proxies(settings),
        **_passed_on(settings),
    }
    return [
        *({"name": name, "value": value} for name, value in given.items()),
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        # Whoever asks after its health asks at the pod's own address.
        {"name": "MIMAWARI_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]


def _proxies(settings: Settings) -> Mapping[str, str]:
    if not settings.proxies:
        return {}
    first = settings.proxies[0]
    named = {"HTTP_PROXY": first, "HTTPS_PROXY": first}
    more = {"MIMAWARI_PROXIES": ",".join(settings.proxies)} if len(settings.proxies) > 1 else {}
    return named | more


def _passed_on(settings: Settings) -> Mapping[str, str]:
    passed = {}
    for name in PASSED_ON:
        value = getattr(settings, name)
        if value != getattr(DEFAULTS, name):
            written = ",".join(value) if isinstance(value, tuple) else str(value)
            passed[names_of(name)[0]] = written
    return passed
