"""The chart is one that a real helm takes, whose every object is what Kubernetes knows."""

from collections.abc import Mapping
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.kube.ground import CHART, GIVEN, NAMESPACE, SECRETS, helm

SCALED = ("--set", "workers.scaling=hpa")
KEDA = ("--set", "workers.scaling=keda")
SET_URL = ("--set", "gateway.publicUrl=https://watch.example")
FILES = {
    *("deployment-api.yaml", "service.yaml", "configmap.yaml", "secret.yaml"),
    *("serviceaccount.yaml", "role.yaml", "rolebinding.yaml", "hpa.yaml"),
}


def draw(*words: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Draw all objects of the chart, by kind and name."""
    text = helm("template", "sm", str(CHART), "-n", NAMESPACE, *GIVEN, *words)
    found = [one for one in yaml.safe_load_all(text) if one]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_14_1_the_chart_has_the_files_of_the_description() -> None:
    assert {path.name for path in (CHART / "templates").iterdir()} >= FILES
    assert {"Chart.yaml", "values.yaml"} <= {path.name for path in CHART.iterdir()}


@pytest.mark.parametrize("words", [(), SCALED, KEDA, ("--set", "networkPolicy.enabled=false")])
def test_helm_finds_nothing_wrong_with_it(words: tuple[str, ...]) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm(
        "lint", "--strict", str(CHART), *GIVEN, *words
    )


@pytest.mark.parametrize(
    "words",
    [
        (),
        SCALED,
        ("--set", "hpa.enabled=false,workers.enabled=false,migrations.enabled=false"),
        ("--set", "networkPolicy.monitorEgressCidrs={10.1.0.0/16}"),
        ("--set", "imagePullSecrets[0].name=registry", "--set", "secrets.more.A=b"),
        ("--set", "existingSecret=mine"),
        ("--set", "gateway.tlsSecret=mine"),
    ],
)
def test_every_object_is_strictly_what_kubernetes_knows(words: tuple[str, ...]) -> None:
    drawn = draw(*words)
    assert len(drawn) > 8
    for one in drawn.values():
        kubernetes_validate.validate(one, "1.37", strict=True)


def test_pods_of_monitors_are_given_the_secrets_of_registries() -> None:
    words = [f"imagePullSecrets[{number}].name={name}" for number, name in enumerate("ab")]
    data = draw("--set", ",".join(words))[("ConfigMap", "stream-monitor")]["data"]
    assert data["MIMAWARI_KUBERNETES_PULL_SECRETS"] == "a,b"


def test_the_gateway_serves_tls_with_the_secret_that_is_named() -> None:
    drawn = draw("--set", "gateway.tlsSecret=mine")[("Deployment", "stream-monitor-gateway")]
    spec = drawn["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "MIMAWARI_TLS_CERT": "/tls/tls.crt",
        "MIMAWARI_TLS_KEY": "/tls/tls.key",
    }
    assert {"name": "tls", "secret": {"secretName": "mine"}} in spec["volumes"]
    assert "tls" in {one["name"] for one in container["volumeMounts"]}
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    role = dict(draw()[("Role", "stream-monitor-gateway")])
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**role, "rule": []}, "1.37", strict=True)


def test_14_3_rights_end_at_the_namespace() -> None:
    drawn = draw()
    role = drawn[("Role", "stream-monitor-gateway")]
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["create", "delete", "get", "list", "watch"],
        },
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]
    assert {one["metadata"]["namespace"] for one in drawn.values()} == {NAMESPACE}
    assert not [kind for kind, _ in drawn if kind.startswith("Cluster")]


def test_14_4_the_gateway_is_scaled_as_described() -> None:
    spec = draw()[("HorizontalPodAutoscaler", "stream-monitor-gateway")]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 3)
    measured = {one["resource"]["name"]: one["resource"]["target"] for one in spec["metrics"]}
    wanted = {"type": "Utilization", "averageUtilization": 80}
    assert measured == {"cpu": wanted, "memory": wanted}


def test_workers_are_scaled_by_the_depth_of_the_queue_where_keda_is() -> None:
    [trigger] = draw(*KEDA)[("ScaledObject", "stream-monitor-worker")]["spec"]["triggers"]
    assert trigger["type"] == "postgresql"
    assert "FROM jobs" in trigger["metadata"]["query"]
    words = ("workers.keda.source=redis", "workers.keda.redisAddress=redis:6379")
    [trigger] = draw(*KEDA, "--set", ",".join(words))[("ScaledObject", "stream-monitor-worker")][
        "spec"
    ]["triggers"]
    assert trigger["metadata"]["address"] == "redis:6379"


@pytest.mark.parametrize(
    ("words", "url", "proxies"),
    [
        ((), "http://stream-monitor-gateway:8084", ""),
        (("--set", "name=x,gateway.service.port=80"), "http://x-gateway:80", ""),
        (
            (*SET_URL, "--set", "gateway.trustedProxies=10.0.0.0/8"),
            "https://watch.example",
            "10.0.0.0/8",
        ),
        (("--set", "config.MIMAWARI_PUBLIC_URL=https://a.example"), "https://a.example", ""),
    ],
)
def test_the_gateway_knows_its_own_name_once(
    words: tuple[str, ...], url: str, proxies: str
) -> None:
    text = helm("template", "sm", str(CHART), *GIVEN, *words, "-s", "templates/configmap.yaml")
    assert text.count("MIMAWARI_PUBLIC_URL:") == text.count("MIMAWARI_TRUSTED_PROXIES:") == 1
    given = yaml.safe_load(text)["data"]
    assert (given["MIMAWARI_PUBLIC_URL"], given["MIMAWARI_TRUSTED_PROXIES"]) == (url, proxies)


def test_the_internal_port_is_for_pods_of_monitors_alone() -> None:
    drawn = draw()
    policy = drawn[("NetworkPolicy", "stream-monitor-gateway")]["spec"]
    [inner] = [one for one in policy["ingress"] if one["ports"][0]["port"] == "internal"]
    assert inner["from"] == [{"podSelector": {"matchLabels": {"app": "stream-monitor"}}}]
    assert drawn[("Service", "stream-monitor-internal")]["spec"]["type"] == "ClusterIP"
    gateway = drawn[("Deployment", "stream-monitor-gateway")]["spec"]["template"]
    # Pods with the monitors' label are looked after one by one, and deleted.
    assert gateway["metadata"]["labels"]["app"] == "stream-monitor-gateway"


def test_every_container_is_confined_and_no_secret_is_in_plain_sight() -> None:
    drawn = draw()
    pods = [one["spec"]["template"] for one in drawn.values() if "template" in one.get("spec", {})]
    assert len(pods) == 3
    for pod in pods:
        [container] = pod["spec"]["containers"]
        confined = container["securityContext"]
        assert confined["runAsNonRoot"] is True
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["capabilities"] == {"drop": ["ALL"]}
    plain = str({key: one for key, one in drawn.items() if key[0] != "Secret"})
    assert not [value for value in SECRETS.values() if value in plain]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(AssertionError, match=r"set secrets\.dbDsn"):
        draw("--set", "secrets.dbDsn=")
    with pytest.raises(AssertionError, match=r"workers\.scaling is none, hpa or keda"):
        draw("--set", "workers.scaling=more")
