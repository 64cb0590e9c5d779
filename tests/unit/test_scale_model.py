"""docs/scale.md is what the model computes from the figures that are in the repository; and the model computes what it says."""

from __future__ import annotations

import dataclasses
import json

import pytest

from scripts import scale_model as model

FIGURES = model.read_figures(model.FIGURES)
GIVEN = model.Assumptions()


def test_the_page_has_what_the_model_computes() -> None:
    page = model.PAGE.read_text("utf-8")
    machine = json.loads(model.FIGURES.read_text("utf-8"))["machine"]
    assert page == model.put_into(page, model.render(FIGURES, GIVEN, machine)), "run: scripts/scale_model.py --write"


def test_another_figure_makes_another_page() -> None:
    slower = dataclasses.replace(FIGURES, seat_batch_us=FIGURES.seat_batch_us * 10)
    assert model.render(slower, GIVEN, "") != model.render(FIGURES, GIVEN, "")


def test_every_figure_was_measured() -> None:
    assert all(value > 0 for value in dataclasses.astuple(FIGURES))


def test_a_message_is_paid_for_once() -> None:
    """By hand, with figures that are easy to add: 60 agents with a message a minute are one message per second."""
    figures = model.Figures(
        seat_batch_us=10, seat_record_us=100, seat_link_us=1000, copy_batch_us=1, copy_record_us=2, nats_batch_us=3,
        nats_record_us=4, nats_link_us=5, confirm_ms=1, idle_agent_share=0, agent_bytes=1000, join_us=50, seat_bytes=10_000,
        link_bytes=700, log_bytes=400, copy_bytes=600, delivery_us=5,
    )  # fmt: skip
    given = model.Assumptions(
        peak=1, body_bytes=200, presence_every_s=1, presence_bytes=0, small_message_us=0, server_message_us=0
    )
    found = model.compute(60, 2, figures, given)
    assert found.messages_per_s == found.peak_per_s == 1
    assert found.seat_cores == pytest.approx(1110e-6)
    assert found.edge_cores == pytest.approx(3e-6)
    assert found.server_cores == pytest.approx(12e-6 / 3)
    assert found.server_bytes_per_s == pytest.approx((400 * 2 + 700) / 3)
    assert found.seat_memory_bytes == 70_000
    assert found.copy_bytes == 30 * 86_400 * 600
    assert found.presence_per_s == 4
    assert found.rejoin_s == pytest.approx(0.003)
    busy = model.compute(60 * 10_000, 2, figures, given)  # ten messages while a record is confirmed
    assert busy.seat_cores == pytest.approx(10_000 * (10 + 100 / 10 + 1000) / 1e6)


@pytest.mark.parametrize("number", range(len(model.LIMITS)))
def test_a_limit_is_where_it_is_said_to_be(number: int) -> None:
    limit = model.LIMITS[number]
    agents = model.reach(limit, FIGURES, GIVEN)
    for count, is_kept in ((agents, True), (agents + GIVEN.agents_per_host, False)):
        hosts = -(-count // GIVEN.agents_per_host)
        assert limit.is_kept(model.compute(count, hosts, FIGURES, GIVEN), GIVEN) is is_kept
