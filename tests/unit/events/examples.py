"""One event of every type, with all of its fields, as the JSON a reader gets; and what each may leave out."""

from __future__ import annotations

from typing import Any

EXAMPLES: dict[str, dict[str, Any]] = {
    "session.started": {
        "sessionId": "ses_1", "agent": {"name": "Alice", "cli": "claude", "model": "m", "version": "2"}, "startedAt": 1,
        "config": {"permissionMode": "ask", "workingDirectory": "/p", "environment": {"A": "b"}},
    },
    "session.ended": {"sessionId": "ses_1", "endedAt": 2, "reason": "crashed", "summary": {"duration": 1}},
    "item.started": {"sessionId": "ses_1", "itemId": "i", "itemType": "tool_call", "startedAt": 1, "metadata": {"a": 1}},
    "item.delta": {"sessionId": "ses_1", "itemId": "i", "delta": {"type": "tool_output", "content": "x"}},
    "item.completed": {"sessionId": "ses_1", "itemId": "i", "completedAt": 3, "duration": 2.5, "result": {"ok": True}},
    "permission.requested": {
        "sessionId": "ses_1", "requestId": "r", "tool": "bash", "command": "ls", "filePath": "f", "description": "d",
        "riskLevel": "high",
    },
    "permission.resolved": {
        "sessionId": "ses_1", "requestId": "r", "resolution": "denied", "resolvedBy": "policy", "resolvedAt": 1,
        "reason": "no",
    },
    "question.requested": {
        "sessionId": "ses_1", "questionId": "q", "question": "?", "options": ["a", "b"], "defaultAnswer": "a",
    },
    "question.resolved": {"sessionId": "ses_1", "questionId": "q", "answer": "a", "resolvedBy": "human"},
    "message.exchanged": {
        "sessionId": "ses_1", "messageId": "msg_1", "from": "Alice", "to": "Bob", "body": "b", "kind": "message", "thread": "t",
        "channel": "c",
    },
    "agent.spawned": {
        "sessionId": "ses_1", "agentName": "Bob", "cli": "codex", "spawnedBy": "Alice", "task": "t", "role": "r",
    },
    "agent.released": {"sessionId": "ses_1", "agentName": "Bob", "releasedBy": "Alice", "reason": "done"},
    "consensus.proposed": {
        "sessionId": "ses_1", "proposalId": "p", "title": "t", "proposedBy": "Alice", "participants": ["Bob"],
        "consensusType": "weighted", "description": "d", "quorum": "60%", "weights": {"Bob": 2}, "expiresAt": 5,
    },
    "consensus.vote": {"sessionId": "ses_1", "proposalId": "p", "voter": "Bob", "vote": "reject", "reason": "r"},
    "consensus.resolved": {
        "sessionId": "ses_1", "proposalId": "p", "outcome": "rejected", "votes": {"Bob": "abstain"}, "reasons": {"Bob": "r"},
        "resolution": "s",
    },
    "tokens.used": {
        "sessionId": "ses_1", "agentName": "Alice", "model": "m", "inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3,
        "cacheWriteTokens": 4, "estimatedCostUsd": 0.5,
    },
    "file.operation": {"sessionId": "ses_1", "operation": "edit", "filePath": "f", "linesChanged": 1, "diff": "+"},
    "command.executed": {
        "sessionId": "ses_1", "command": "ls", "exitCode": 1, "duration": 3, "stdout": "o", "stderr": "e",
    },
    "message.delivered": {
        "messageId": "msg_1", "to": "Bob", "attempt": 1, "latencyMs": 4, "door": "typing", "evidence": "composer",
    },
    "agent.state": {"state": "waiting", "waitingFor": "w", "door": "d", "doorNote": "n", "paused": True},
    "budget.exceeded": {"budget": "hour", "limitUsd": 1.5, "spentUsd": 2, "action": "pause-spawning", "agent": "Alice"},
    "loop.detected": {"agents": ["Alice", "Bob"], "hops": 30, "stage": "slowed", "text": "…"},
    "access.denied": {"action": "send", "to": "Bob", "rule": "deny send from Alice to Bob"},
    "pattern.started": {"sessionId": "ses_1", "runId": "run-3fa9", "pattern": "map_reduce", "total": 4},
    "pattern.progress": {
        "sessionId": "ses_1", "runId": "run-3fa9", "step": "failed", "task": "Worker", "agent": "Worker-1-3fa9", "attempt": 1,
        "done": 0, "total": 4, "error": "It crashed.",
    },
    "pattern.ended": {
        "sessionId": "ses_1", "runId": "run-3fa9", "outcome": "completed", "done": 4, "duration": 1200, "totalTokens": 900,
        "estimatedCostUsd": 0.25,
    },
    "stream.gap": {"oldest": 7, "lost": 3, "reason": "unwritten"},
}  # fmt: skip

OPTIONAL: dict[str, set[str]] = {
    "session.ended": {"summary"},
    "item.started": {"metadata"},
    "item.completed": {"result"},
    "permission.requested": {"command", "filePath"},
    "permission.resolved": {"reason"},
    "question.requested": {"options", "defaultAnswer"},
    "message.exchanged": {"thread", "channel"},
    "agent.spawned": {"task", "role"},
    "consensus.proposed": {"description", "quorum", "weights", "expiresAt"},
    "consensus.vote": {"reason"},
    "consensus.resolved": {"reasons", "resolution"},
    "tokens.used": {"cacheReadTokens", "cacheWriteTokens", "estimatedCostUsd"},
    "file.operation": {"linesChanged", "diff"},
    "command.executed": {"stdout", "stderr"},
    "message.delivered": {"door", "evidence"},
    "agent.state": {"waitingFor", "door", "doorNote", "paused"},
    "budget.exceeded": {"agent"},
    "pattern.progress": {"error"},
    "pattern.ended": {"done", "duration", "totalTokens", "estimatedCostUsd"},
    "stream.gap": {"lost", "reason"},
}

ENVELOPE = {"_seq": 9, "_ts": 1_800_000_000_000, "_sessionId": "ses_1", "_agentName": "Alice"}
