"""Ready-made ways to have agents work together: each starts the agents it needs, and none is left when it returns.

`mapping`, `staging` and `fanning` are the patterns; `crew` starts an agent, asks it and releases it; the other modules are its
parts. All of it is done through a `RelayClient`, as any program could.
"""

from agent_relay.patterns.crew import SpawnOptions
from agent_relay.patterns.fanning import FanOutResult, fan_out
from agent_relay.patterns.mapping import ItemFailure, ItemResult, MapReduceResult, map_reduce
from agent_relay.patterns.staging import PipelineFailed, PipelineResult, StageResult, pipeline
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
