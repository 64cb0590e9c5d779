"""URLs of databases: what the driver gets, and what people see."""

from __future__ import annotations

import pytest

from agent_relay.storage.postgres.url import check_url, has_password, read_url


def test_each_project_has_a_schema_of_its_own_unless_the_url_names_one() -> None:
    assert read_url("postgresql://me@host/db", "0123456789ab").schema == "agent_relay_0123456789ab"
    named = read_url("postgres://me@host:5433/db?schema=team-1&sslmode=require", "x")
    assert (named.schema, named.dsn) == ("team-1", "postgres://me@host:5433/db?sslmode=require")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:s3cret@host/db", "postgresql://me@host/db?password=s3cret", "postgresql://me:s3cret@[::1]:5432/db",
        "postgresql://me:s3cret@/db?host=/run/postgresql", "postgresql://me:%733cret@host/db",
    ],
)  # fmt: skip
def test_a_password_is_for_the_driver_alone(text: str) -> None:
    url = read_url(text, "x")
    assert has_password(text)
    assert "3cret" in url.dsn
    assert "3cret" not in url.location
    assert "s3cret" in url.secrets


def test_a_url_without_a_password_is_shown_whole() -> None:
    text = "postgresql://me@/db?host=/run/postgresql"
    assert not has_password(text)
    assert read_url(text, "x").location == f"{text}&schema=agent_relay_x"


@pytest.mark.parametrize(
    "text",
    [
        "", "db", "mysql://me:s3cret@host/db", "postgresql:", "postgresql://me:s3cret@[host/db", "postgresql://host/db#part",
        "postgresql://host/db?schema=", 'postgresql://host/db?schema=a"b', "postgresql://host/db?schema=pg_catalog",
        "postgresql://host/db?schema=a;drop", f"postgresql://host/db?schema={'a' * 64}", "postgresql://host/db?search_path=x",
        "postgresql://host/db?options=-csearch_path%3Dx",
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_database_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="postgresql://user@host/database") as refusal:
        check_url(text)
    assert "s3cret" not in str(refusal.value)
