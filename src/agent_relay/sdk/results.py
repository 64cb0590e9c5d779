"""Results of tasks: a task is a question in a thread of its own, and its id is that thread.

So whoever knows the id can give the result, without having kept the question: it is looked up by its thread. The result is the
answer to the question, with the kind `result`; `data` names the task, and the error where there is no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.receipts import Receipt

RESULT_KIND = "result"
TASK_KIND = "task"
_LOOKED_AT = 20  # messages of the thread: a task is asked once, and perhaps once more


@dataclass(frozen=True, slots=True)
class AskedTask:
    """A question that waits for its result."""

    id: str
    message_id: str
    asker: str


async def find_task(relay: RelayClient, task_id: str) -> AskedTask:
    """The newest question to this agent in that thread. Raises RelayError where there is none."""
    found = await relay.history(thread=task_id, to=relay.name, limit=_LOOKED_AT)
    questions = [message for message in found.messages if (message.get("payload_meta") or {}).get("sync")]
    asked = next(iter(questions or found.messages), None)
    if asked is None:
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"{relay.name} was given no task {show(task_id, 80)}; use the id that stands in the task.",
            field="task_id", reason="task_not_found",
        )  # fmt: skip
    return AskedTask(task_id, str(asked["message_id"]), str(asked["from"]))


async def give_result(
    relay: RelayClient, task: AskedTask, value: Any, error: str | None = None, heard: str | None = None
) -> Receipt:  # fmt: skip
    """Sends it to whoever asked. Only the first result of a question counts, so another one is refused; the same once more is
    the same message."""
    body = error if error is not None else write_value(value)
    data = {"task": task.id} if error is None else {"task": task.id, "error": error}
    receipt = await relay.send(
        task.asker, body, kind=RESULT_KIND, thread=task.id, data=data, reply_to=task.message_id, heard=heard,
        id=f"result_{task.message_id}",
    )  # fmt: skip
    if receipt.duplicate and not await _is_same(relay, receipt.message_id, body):
        raise RelayError(
            ErrorCode.REJECTED, f"Task {show(task.id, 80)} already has a result from {relay.name}; the first one counts.",
            reason="result_given",
        )  # fmt: skip
    return receipt


async def _is_same(relay: RelayClient, message_id: str, body: str) -> bool:
    """A repetition after a lost connection is a duplicate, too."""
    sent = (await relay.message(message_id)).message
    return bool(sent.get("truncated")) or (sent.get("payload") or {}).get("body") == body


def write_value(value: Any) -> str:
    """Text as it is, everything else as JSON. Raises RelayError where that cannot be."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"The result cannot be written as JSON: {error}.", field="value") from None
