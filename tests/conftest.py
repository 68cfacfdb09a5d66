"""Settings shared by all tests."""

import os
from pathlib import Path

from hypothesis import settings

from iclab.simulation import programs

# A fixed stream: a failure seen once is seen again.
settings.register_profile("iclab", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("iclab")

# Programs are compiled once for all processes of all sessions in this checkout, and none goes to the user's folder.
os.environ.setdefault("ICLAB_CACHE", str(Path(__file__).parents[1] / ".pytest_cache"))
programs.keep()
