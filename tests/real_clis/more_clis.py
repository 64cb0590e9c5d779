"""More CLIs, which are known by recordings of their screens: how each is started against the scripted model.

They play the scenes of every release (`make test-real-clis VERSIONS=…`), and no others.
"""

from __future__ import annotations

from pathlib import Path

from tests.real_clis.clis import CLIS, KEY, Launch, RealCli, write

MODEL = "scripted-model"


def _qwen(home: Path, project: Path, url: str) -> Launch:
    del project
    quiet = {"disableAutoUpdate": True, "disableUpdateNag": True, "enableAutoUpdate": False}
    settings = {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "general": quiet,
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "tools": {"approvalMode": "default"},
    }
    write(home / ".qwen" / "settings.json", settings)
    environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": MODEL}
    return Launch(["qwen", "--auth-type", "openai"], environment)


def _kilo(home: Path, project: Path, url: str) -> Launch:
    del project
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {MODEL: {"name": "Scripted Model"}},
    }
    settings = {
        "provider": {"scripted": provider},
        "model": f"scripted/{MODEL}",
        "small_model": f"scripted/{MODEL}",
        "permission": {"bash": "ask", "edit": "ask"},
        "autoupdate": False,
        "share": "disabled",
    }
    write(home / ".config" / "kilo" / "kilo.json", settings)
    names = ("DISABLE_AUTOUPDATE", "DISABLE_MODELS_FETCH", "DISABLE_LSP_DOWNLOAD")
    return Launch(["kilo"], {f"{brand}_{name}": "1" for brand in ("KILO", "OPENCODE") for name in names})


_CONTINUE = """\
name: Scripted
version: 0.0.1
schema: v1
models:
  - name: Scripted
    provider: openai
    model: {model}
    apiBase: {url}/v1
    apiKey: {key}
    roles: [chat]
    capabilities: [tool_use]
"""


def _continue(home: Path, project: Path, url: str) -> Launch:
    del project
    config = home / ".continue" / "config.yaml"
    write(config, _CONTINUE.format(model=MODEL, url=url, key=KEY))
    environment = {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"}
    return Launch(["cn", "--config", str(config)], environment)


def _pi(home: Path, project: Path, url: str) -> Launch:
    del project
    model = {"id": MODEL, "name": "Scripted", "reasoning": False, "input": ["text"], "contextWindow": 128_000, "maxTokens": 8_192}
    cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY, "models": [{**model, "cost": cost}]}
    write(home / ".pi" / "agent" / "models.json", {"providers": {"scripted": provider}})
    return Launch(["pi", "--provider", "scripted", "--model", MODEL], {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"})


def _copilot(home: Path, project: Path, url: str) -> Launch:
    write(home / ".copilot" / "config.json", {"trusted_folders": [str(project)], "banner": "never"})
    environment = {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": MODEL,
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }
    return Launch(["copilot"], environment)


def _cline(home: Path, project: Path, url: str) -> Launch:
    del project
    state = {
        "welcomeViewCompleted": True,
        "actModeApiProvider": "openai",
        "planModeApiProvider": "openai",
        "actModeOpenAiModelId": MODEL,
        "planModeOpenAiModelId": MODEL,
        "openAiBaseUrl": f"{url}/v1",
        "telemetrySetting": "disabled",
    }
    write(home / ".cline" / "data" / "globalState.json", state)
    write(home / ".cline" / "data" / "secrets.json", {"openAiApiKey": KEY})
    return Launch(["cline"], {"CLINE_NO_AUTO_UPDATE": "1"})


_ADVERTISEMENT = ("Press Enter to open, any other key to close", "Escape")
MORE_CLIS = {
    cli.name: cli
    for cli in (
        RealCli("copilot", _copilot, "Do you want", ("Enter",)),
        RealCli("qwen", _qwen, "Allow execution", ("Enter",)),
        RealCli("kilo", _kilo, "Permission required", ("Enter",), has_transcript=False),
        RealCli("cline", _cline, "Approve tool call", ("y",), has_transcript=False, dismiss=_ADVERTISEMENT),
        RealCli("continue", _continue, "Would you like to continue", ("Enter",), has_transcript=False),
        RealCli("pi", _pi, "", (), has_transcript=False, asks=False),
    )
}
ALL_CLIS = {**CLIS, **MORE_CLIS}
