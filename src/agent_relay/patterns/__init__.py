"""Ready-made ways to have agents work together: each starts the agents it needs, and none is left when it returns.

`map_reduce`, `pipeline`, `fan_out`, `supervise`, `debate` and `vote` are the patterns; `crew` starts an agent, asks it and
releases it; the other modules are its parts. All of it is done through a `RelayClient`, as any program could.
"""

from agent_relay.events.costs import Breakdown as Usage
from agent_relay.patterns.crew import RunOptions
from agent_relay.patterns.debate import DebateFailed, DebateResult, Statement, debate
from agent_relay.patterns.fan_out import FanOutResult, fan_out
from agent_relay.patterns.map_reduce import ItemFailure, ItemResult, MapReduceResult, map_reduce
from agent_relay.patterns.pipeline import PipelineFailed, PipelineResult, StageResult, pipeline
from agent_relay.patterns.supervisor import Escalation, SupervisorResult, supervise
from agent_relay.patterns.tasks import AgentFailed, Answer, Memory, OnProgress, Progress, Task
from agent_relay.patterns.vote import Ballot, VoteResult, vote

__all__ = [
    "AgentFailed",
    "Answer",
    "Ballot",
    "DebateFailed",
    "DebateResult",
    "Escalation",
    "FanOutResult",
    "ItemFailure",
    "ItemResult",
    "MapReduceResult",
    "Memory",
    "OnProgress",
    "PipelineFailed",
    "PipelineResult",
    "Progress",
    "RunOptions",
    "StageResult",
    "Statement",
    "SupervisorResult",
    "Task",
    "Usage",
    "VoteResult",
    "debate",
    "fan_out",
    "map_reduce",
    "pipeline",
    "supervise",
    "vote",
]
