"""What the pictures are made of, by itself: columns of events, scales, steps, places."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.test_modules import call, lab

__all__ = ["lab"]
EVENT = {"_sessionId": "s", "sessionId": "s", "_agentName": "Alice"}


def test_what_belongs_together_is_one_step(lab: Page) -> None:
    events = [
        {"type": "item.started", "_seq": 1, "_ts": 10, "itemId": "a", "itemType": "thinking", **EVENT},
        {"type": "tokens.used", "_seq": 2, "_ts": 11, **EVENT},
        {"type": "item.delta", "_seq": 3, "_ts": 12, "itemId": "a", "delta": {"type": "text", "content": "hm"}, **EVENT},
        {"type": "permission.requested", "_seq": 4, "_ts": 13, "requestId": "a", "tool": "Bash", "description": "d", **EVENT},
        {"type": "item.completed", "_seq": 5, "_ts": 14, "itemId": "a", "duration": 4, **EVENT},
        {"type": "permission.resolved", "_seq": 6, "_ts": 15, "requestId": "a", "resolution": "denied", **EVENT},
        {"type": "from.a.later.version", "_seq": 7, "_ts": 16, **EVENT},
    ]
    steps = call(lab, "views/replay-steps.js", "m.foldEvents(x)", events)
    assert [(step["id"], step["kind"], step["ended"] and step["ended"]["_seq"]) for step in steps] == [
        (1, "item", 5), (4, "request", 6), (7, "note", None),
    ]  # fmt: skip
    assert steps[0]["parts"] == [{"ts": 12, "text": "hm"}]


def test_a_duration_that_nobody_knows_is_not_shown(lab: Page) -> None:
    done = {"type": "item.completed", "_seq": 5, "_ts": 14, "itemId": "a", "duration": None, **EVENT}
    assert call(lab, "views/event-kinds.js", "m.describe(x)", done) == "finished"
    assert call(lab, "views/event-kinds.js", "m.describe(x)", done | {"duration": 1_500}).startswith("finished after ")


def test_columns_hold_what_was_put_in_and_find_it(lab: Page) -> None:
    found = call(
        lab, "views/timeline-columns.js",
        """(() => { const late = new m.Columns(2), early = new m.Columns(2);
             for (let n = 10; n < 20; n++) late.push(n, n * 100, 1, 2, 3, 0, m.NONE);
             for (let n = 5; n < 10; n++) early.push(n, n * 100, 1, 2, 3, 0, m.NONE);
             const all = early.followedBy(late);
             const places = [1_000, 1, 99_999].map((ms) => all.placeOf(ms));
             return [all.length, ...places, all.placeOfSeq(7), all.placeOfSeq(4), all.seq[14]]; })()""",
    )  # fmt: skip
    assert found == [15, 5, 0, 15, 2, -1, 19]


def test_the_window_stays_between_the_oldest_event_and_now(lab: Page) -> None:
    zoomed = call(lab, "views/timeline-scale.js", "m.zoom({ from: 0, to: 1000 }, 0.5, 0.25)")
    assert zoomed == {"from": 125, "to": 625}
    confined = call(lab, "views/timeline-scale.js", "m.confine({ from: 0, to: 10_000_000 }, 4_000_000, 5_000_000)")
    assert confined["to"] - confined["from"] <= 1_060_001
    assert confined["to"] <= 5_000_000 * 1.02
    ticks = call(lab, "views/timeline-scale.js", "m.ticksOf({ from: 0, to: 60_000 }, 600, 90)")
    assert [tick["ms"] for tick in ticks] == [0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]


def test_whoever_asks_something_waits_whatever_it_says_of_itself(lab: Page) -> None:
    events = [
        ("agent.state", "working", 0), ("permission.requested", "high", 100), ("question.requested", "", 150),
        ("agent.state", "working", 180), ("permission.resolved", "approved", 200), ("question.resolved", "", 300),
        ("agent.state", "waiting", 400), ("permission.requested", "low", 450), ("agent.state", "idle", 500),
        ("agent.state", "working", 600),
    ]  # fmt: skip
    found = call(
        lab, "views/timeline-states.js",
        """await (async () => { const { Columns, Words, NONE } = await import("./static/views/timeline-columns.js");
             const data = { columns: new Columns(), types: new Words(), notes: new Words() };
             x.forEach(([type, note, ts], seq) => {
               data.columns.push(seq, ts, 0, data.types.place(type), data.notes.place(note), 0, NONE);
             });
             const spans = [];
             m.findStates(data, { lanes: [3], groups: [] }, data.columns.length, 1_000, (...span) => spans.push(span));
             return spans; })()""",
        events,
    )  # fmt: skip
    assert [tuple(span) for span in found] == [
        (3, "working", 0, 100), (3, "waiting", 100, 150), (3, "waiting", 150, 180), (3, "waiting", 180, 200),
        (3, "waiting", 200, 300), (3, "working", 300, 400), (3, "waiting", 400, 450), (3, "waiting", 450, 500),
        (3, "idle", 500, 600), (3, "working", 600, 1_000),
    ]  # fmt: skip


def test_nobody_jumps_when_somebody_comes(lab: Page) -> None:
    moved = call(
        lab, "views/graph-layout.js",
        """(() => { const layout = new m.Layout(), names = Array.from({ length: 12 }, (_, n) => `n${n}`);
             const edges = names.slice(1).map((name, n) => ({ from: name, to: names[n >> 1], weight: 0.5 }));
             layout.arrange(names, edges);
             const before = new Map(names.map((name) => [name, { ...layout.places.get(name) }]));
             const again = layout.arrange(names, edges);
             layout.arrange([...names, "new"], [...edges, { from: "new", to: "n3", weight: 1 }]);
             const way = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
             const far = names.map((name) => way(before.get(name), layout.places.get(name)));
             const inside = [...layout.places.values()].every(({ x, y }) => Math.abs(x) <= 1.02 && Math.abs(y) <= 1.02);
             return { again, far: Math.max(...far), inside }; })()""",
    )  # fmt: skip
    assert moved["again"] is False
    assert moved["far"] < 0.08
    assert moved["inside"] is True
