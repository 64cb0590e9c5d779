"""The files of deploy/ against what they configure: the real settings, the real nats-server, the real metrics."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_relay.cluster.figures import Figures
from agent_relay.daemon.cluster.monitor import ClusterMonitor
from agent_relay.daemon.config import load_config
from agent_relay.daemon.settings import FLAG_NAMES, SETTINGS
from agent_relay.protocol import places
from agent_relay.transports.http.metrics import Metrics
from tests.support.event_driver import HarnessEvents
from tests.support.nats_servers import find_server
from tests.unit.daemon.cluster.test_monitor import FACTS
from tests.unit.transports.http_api.test_metrics import SERVER

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
OF_UP = {"--foreground", "--state-dir", "--socket"}  # what `up` takes besides the settings
VARIABLES = {setting.env for setting in SETTINGS} | {value for name, value in vars(places).items() if name.startswith("ENV_")}
NATS_ENVIRONMENT = {
    "NATS_NAME": "n1", "NATS_DATA": "/var/lib/nats", "NATS_ROUTES": '["nats-route://n1:6222", "nats-route://n2:6222"]',
    "RELAY_CLUSTER_TOKEN": "relay-0123456789", "NATS_TLS_CERT": str(ROOT / "tests/data/tls/cert.pem"),
    "NATS_TLS_KEY": str(ROOT / "tests/data/tls/key.pem"), "NATS_TLS_CA": str(ROOT / "tests/data/tls/cert.pem"),
}  # fmt: skip


# --- relays -------------------------------------------------------------------------------------------------------------


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8")))


def manifests() -> list[dict[str, Any]]:
    return [
        found for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for found in yaml.safe_load_all(path.read_text("utf-8"))
    ]


def dockerfile() -> dict[str, str]:
    """Its instructions, the last of each kind."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    return dict(line.split(" ", 1) for line in text.splitlines() if re.match(r"[A-Z]+ ", line))


def image_environment() -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(dockerfile()["ENV"]))


def relays() -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Every relay that is started somewhere: where, its arguments, its environment."""
    command = json.loads(dockerfile()["CMD"])
    for name, service in compose()["services"].items():
        if name.startswith("relay"):
            yield f"compose {name}", service.get("command", command), image_environment() | service["environment"]
    for found in manifests():
        if (found["kind"], found["metadata"]["name"]) == ("StatefulSet", "relay"):
            (container,) = found["spec"]["template"]["spec"]["containers"]
            variables = {variable["name"]: variable.get("value", "relay-0") for variable in container["env"]}
            yield "kubernetes", container["args"], image_environment() | variables
    for path in sorted((DEPLOY / "systemd").rglob("agent-relay*.service")):
        text = path.read_text("utf-8")
        (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
        program, *arguments = line.split()
        assert program.endswith("/bin/agent-relay")
        named = dict.fromkeys(re.findall(r"AGENT_RELAY_[A-Z_]+", text.partition("[Unit]")[0]), "nats://n1:4222")
        yield path.name, arguments, named | dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))


RELAYS = {place: (arguments, environment) for place, arguments, environment in relays()}


@pytest.mark.parametrize("place", RELAYS)
def test_a_relay_is_started_with_settings_that_exist_and_values_that_are_valid(place: str, tmp_path: Path) -> None:
    arguments, environment = RELAYS[place]
    assert arguments[0] == "up"
    given = {word for word in arguments if word.startswith("--")}
    assert given <= OF_UP | set(FLAG_NAMES)
    assert {name for name in environment if name.startswith("AGENT_RELAY_")} <= VARIABLES
    flags = {FLAG_NAMES[word]: arguments[place + 1] for place, word in enumerate(arguments) if word in FLAG_NAMES}
    if ".service" in place:
        environment = environment | {"AGENT_RELAY_CLUSTER_PROJECT": "shop"}
    config = load_config(flags, environment, project_root=str(tmp_path), home=str(tmp_path), state_dir="/s", socket="/s/s")
    assert config.cluster.servers
    assert config.cluster.monitor is not None or "user" in str(next(DEPLOY.rglob(place), ""))


def test_the_other_flags_are_those_of_up() -> None:
    """docs/cli.md is generated, and a test holds it to the commands."""
    section = (ROOT / "docs" / "cli.md").read_text("utf-8").partition("## agent-relay up\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"--[a-z-]+", section)) >= OF_UP


def test_the_files_of_three_hosts_name_three_hosts() -> None:
    environments = [environment for place, (_, environment) in RELAYS.items() if place.startswith("compose")]
    assert len({environment["AGENT_RELAY_CLUSTER_HOST"] for environment in environments}) == 3
    assert {environment["AGENT_RELAY_CLUSTER"] for environment in environments} == {
        "nats://n1:4222,nats://n2:4222,nats://n3:4222"
    }


def test_no_secret_is_in_a_file() -> None:
    """Tokens come from the environment of whoever starts it, from a Secret, or from a file that is not here."""
    for path in (path for path in DEPLOY.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        for name, value in re.findall(r"([A-Z_]*TOKEN)['\"]?\s*[:=]\s*([^\s,}]+)", path.read_text("utf-8")):
            assert value.startswith(("$", "relay-…", '"relay-$(', "relay-$(")), f"{path.name}: {name}"
    for found in manifests():
        assert found["kind"] != "Secret"


def test_the_image_runs_without_root_and_without_secrets() -> None:
    instructions = dockerfile()
    assert instructions["USER"] == "relay"
    assert "/ready" in instructions["HEALTHCHECK"]
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert ignored[0] == "*"
    assert {f"!{name}" for name in names} <= set(ignored)
    assert all((ROOT / name).exists() for name in names)


def test_pods_are_probed_bounded_and_unprivileged() -> None:
    sets = {found["metadata"]["name"]: found["spec"] for found in manifests() if found["kind"] == "StatefulSet"}
    services = {found["metadata"]["name"] for found in manifests() if found["kind"] == "Service"}
    budgets = {found["metadata"]["name"] for found in manifests() if found["kind"] == "PodDisruptionBudget"}
    assert set(sets) == budgets == {"nats", "relay"}
    for spec in sets.values():
        assert (spec["replicas"], spec["podManagementPolicy"]) == (3, "Parallel")
        assert spec["serviceName"] in services
        pod = spec["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        (container,) = pod["containers"]
        assert {"startupProbe", "livenessProbe", "readinessProbe", "resources"} <= container.keys()
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        ports = {port["name"] for port in container["ports"]}
        assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} <= ports
    (relay,) = sets["relay"]["template"]["spec"]["containers"]
    # A host without a majority waits: to start it again would help nobody.
    assert (relay["livenessProbe"]["httpGet"]["path"], relay["readinessProbe"]["httpGet"]["path"]) == ("/health", "/ready")


def test_the_units_are_hardened_and_understood_by_systemd() -> None:
    for path in sorted((DEPLOY / "systemd" / "system").glob("*.service")):
        text = path.read_text("utf-8")
        for wanted in (
            "NoNewPrivileges=yes",
            "ProtectSystem=strict",
            "ProtectHome=yes",
            "CapabilityBoundingSet=\n",
            "UMask=0077",
        ):
            assert wanted in text
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return  # not every machine has systemd; what is left of the test holds everywhere
    units = [str(path) for path in sorted((DEPLOY / "systemd" / "system").glob("*.service"))]
    told = subprocess.run([analyze, "verify", *units], capture_output=True, text=True, timeout=60, check=False).stderr
    assert [line for line in told.splitlines() if "is not executable" not in line and str(DEPLOY) in line] == []


# --- NATS ---------------------------------------------------------------------------------------------------------------


def check_config(path: Path) -> str:
    """What nats-server says against a configuration; "" for nothing."""
    command, environment = [find_server(), "-t", "-c", str(path)], os.environ | NATS_ENVIRONMENT
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return "" if found.returncode == 0 else found.stderr


@pytest.mark.parametrize("has_tls", [False, True])
def test_the_servers_configuration_is_valid(has_tls: bool, tmp_path: Path) -> None:
    folder = shutil.copytree(DEPLOY / "nats", tmp_path / "nats")
    config = folder / "server.conf"
    text = config.read_text("utf-8")
    assert text.count('# include "tls.conf"') == 2
    config.write_text(text.replace('# include "tls.conf"', 'include "tls.conf"' if has_tls else ""))
    assert check_config(config) == ""
    assert re.search(r"^  sync_interval: always\b", text, re.MULTILINE)
    assert re.search(r"^max_payload: 8MB\b", text, re.MULTILINE)


def test_a_wrong_configuration_is_noticed(tmp_path: Path) -> None:
    config = tmp_path / "server.conf"
    config.write_text('jetstream { store_dir: "/x", sync_interval: sometimes }\n')
    assert "sometimes" in check_config(config)


def test_every_variable_of_the_servers_is_set_wherever_they_are_started() -> None:
    used = set(
        re.findall(
            r"\$([A-Z_]+)", "".join((DEPLOY / "nats" / name).read_text("utf-8") for name in ("server.conf", "authorization.conf"))
        )
    )
    nodes = [service["environment"] for name, service in compose()["services"].items() if name.startswith("n")]
    assert len(nodes) == 3
    assert all(used == set(environment) for environment in nodes)
    (pods,) = (
        found["spec"]["template"]["spec"]
        for found in manifests()
        if found["kind"] == "StatefulSet" and found["metadata"]["name"] == "nats"
    )
    assert used == {variable["name"] for variable in pods["containers"][0]["env"]}
    unit = (DEPLOY / "systemd/system/nats.service").read_text("utf-8")
    assert used == set(re.findall(r"\b(NATS_[A-Z]+|RELAY_CLUSTER_TOKEN)\b", unit))
    for routes in (nodes[0]["NATS_ROUTES"], next(v["value"] for v in pods["containers"][0]["env"] if v["name"] == "NATS_ROUTES")):
        assert len(json.loads(routes)) == 3


# --- figures ------------------------------------------------------------------------------------------------------------


def exported() -> set[str]:
    """The names of all samples that Prometheus gets from a host and from the relay."""
    page = ClusterMonitor("a", Figures(), lambda: FACTS).page("/metrics")
    assert page is not None
    metrics = Metrics(HarnessEvents().bus)
    metrics.answered("GET", 200, 0.1, 1, 1)
    text = page.content.decode() + metrics.show(SERVER, [], 0).decode()
    samples = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    return samples | families  # a gauge of agents has no sample while there is no agent


def expressions(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (value for key, value in part.items() if key in {"expr", "definition"})
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from expressions(each)


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:agent_relay|process)_\w+", expression))


def test_the_dashboard_shows_only_what_is_exported() -> None:
    board = json.loads((DEPLOY / "grafana" / "agent-relay.json").read_text("utf-8"))
    used = {name for expression in expressions(board) for name in names_in(expression)}
    assert used - exported() == set()
    assert len(used) > 25
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def test_a_name_that_is_not_exported_is_noticed() -> None:
    assert names_in('rate(agent_relay_cluster_seats{host="a"}[5m])') - exported() == {"agent_relay_cluster_seats"}


def test_every_figure_of_the_page_is_exported_and_every_figure_of_a_host_is_on_the_page() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text("utf-8").partition("## Monitoring")[2].partition("\n## ")[0]
    table = [line for line in page.splitlines() if line.startswith("| `") and not line.startswith("| `/")]
    named = {re.split(r"[{]", name)[0] for line in table for name in re.findall(r"`([a-z_]+(?:\{\w+\})?)`", line.split("|")[1])}
    assert {name if name.startswith("process_") else f"agent_relay_cluster_{name}" for name in named} <= exported()
    families = {name.removeprefix("agent_relay_cluster_") for name in exported() if name.startswith("agent_relay_cluster_")}
    missing = {name for name in families if not any(name.startswith(each) or each.startswith(name) for each in named)}
    assert missing == {"info", "nats_connected"}


def test_prometheus_looks_at_each_host_once() -> None:
    jobs = {job["job_name"]: job for job in yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))["scrape_configs"]}
    assert [target.partition(":")[2] for target in jobs["agent-relay-hosts"]["static_configs"][0]["targets"]] == ["9464"] * 3
    assert len(jobs["agent-relay"]["static_configs"][0]["targets"]) == 1
