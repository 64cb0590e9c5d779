"""Everything that reads what others wrote, each as a function of bytes. It may refuse what it is given in its own words; anything
else that it raises is an error of ours. Where there is more to hold it to, that is held, too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from agent_relay.protocol.arc.client_frames import is_command, read_payload, read_said
from agent_relay.protocol.arc.codes import ArcProblem
from agent_relay.protocol.decode import BadFrame, decode_client_frame, decode_daemon_frame, decode_send
from agent_relay.protocol.envelope import Send
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.framing import FrameDecoder
from agent_relay.protocol.headers import parse_headers, write_headers
from agent_relay.terminal.output.json_fields import decode_object
from agent_relay.terminal.output.transcripts.claude import ClaudeReader
from agent_relay.terminal.output.transcripts.codex import CodexReader
from agent_relay.terminal.output.transcripts.copilot import CopilotReader
from agent_relay.terminal.output.transcripts.gemini import GeminiReader
from agent_relay.terminal.output.transcripts.qwen import QwenReader
from agent_relay.terminal.screen.emulator import Emulator
from agent_relay.transports.arc.frames import FrameReader

_MOST_BYTES = 4_096
_READERS = (ClaudeReader, CodexReader, CopilotReader, GeminiReader, QwenReader)


def read_frames(data: bytes) -> None:
    """However the bytes come, the frames are the same."""
    whole, drip = FrameDecoder(_MOST_BYTES), FrameDecoder(_MOST_BYTES)
    found = whole.feed(data)
    dripped = [frame for byte in data for frame in drip.feed(bytes([byte]))]
    assert found == dripped
    assert whole.oversize_bytes == drip.oversize_bytes


def read_envelope(data: bytes) -> None:
    with suppress(BadFrame):
        decode_daemon_frame(data)
    with suppress(RelayError):
        frame = decode_client_frame(data)
        if isinstance(frame, Send):
            decode_send(frame.payload)


def read_header_file(data: bytes) -> None:
    """What can be read can be written, and is read back as the same."""
    with suppress(RelayError, UnicodeDecodeError):
        message = parse_headers(data.decode())
        assert parse_headers(write_headers(message)) == message


def read_arc(data: bytes) -> None:
    """Frames of WebSockets, however they come, and what is said in them."""
    whole, drip = FrameReader(_MOST_BYTES, 2 * _MOST_BYTES), FrameReader(_MOST_BYTES, 2 * _MOST_BYTES)
    found = whole.feed(data)
    assert found == [frame for byte in data for frame in drip.feed(bytes([byte]))]
    assert whole.broken == drip.broken
    for _, said in [*found, (0, data)]:
        with suppress(ArcProblem, UnicodeDecodeError):
            said.decode()
            heard = read_said(said)
            if is_command(heard):
                read_payload(heard)


def read_screen(data: bytes) -> None:
    """Whatever comes, in one piece or cut anywhere, there is a screen of the right size with the cursor in it."""
    emulator = Emulator(40, 8)
    half = len(data) // 2
    for columns, rows, pieces in ((40, 8, [data]), (20, 5, [data[:half], data[half:]])):
        emulator.resize(columns, rows)
        for piece in pieces:
            emulator.feed(piece)
        emulator.draw()
        seen = emulator.read()
        assert (len(seen.visible), seen.columns) == (rows, columns)
        assert seen.cursor is not None
        assert 0 <= seen.cursor.position - seen.first_visible < rows
        assert 0 <= seen.cursor.column < columns


def read_transcript(data: bytes) -> None:
    for kind in _READERS:
        reader = kind()
        for line in data.splitlines():
            record = decode_object(line)
            if record is not None:
                reader.head(record)
                reader.read(record)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": read_frames,
    "envelope": read_envelope,
    "headers": read_header_file,
    "arc": read_arc,
    "screen": read_screen,
    "transcript": read_transcript,
}
