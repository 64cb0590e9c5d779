"""Settings of the property tests: no deadlines (the machine may be busy), and no examples kept between runs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("core", deadline=None, database=None)
settings.load_profile("core")
