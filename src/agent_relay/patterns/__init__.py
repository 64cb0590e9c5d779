"""Ready-made ways to have agents work together: each starts the agents it needs, and none is left when it returns.

`map_reduce`, `pipeline` and `fan_out` are the patterns; `crew` starts an agent, asks it and releases it; the other modules are
its parts. All of it is done through a `RelayClient`, as any program could.
"""

from agent_relay.patterns.crew import SpawnOptions
from agent_relay.patterns.fan_out import FanOutResult, fan_out
from agent_relay.patterns.map_reduce import ItemFailure, ItemResult, MapReduceResult, map_reduce
from agent_relay.patterns.pipeline import PipelineFailed, PipelineResult, StageResult, pipeline
from agent_relay.patterns.tasks import AgentFailed, Answer, OnProgress, Progress, Task

__all__ = [
    "AgentFailed",
    "Answer",
    "FanOutResult",
    "ItemFailure",
    "ItemResult",
    "MapReduceResult",
    "OnProgress",
    "PipelineFailed",
    "PipelineResult",
    "Progress",
    "SpawnOptions",
    "StageResult",
    "Task",
    "fan_out",
    "map_reduce",
    "pipeline",
]
