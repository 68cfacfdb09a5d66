"""Settings shared by all tests."""

from hypothesis import settings

# A fixed stream: a failure seen once is seen again.
settings.register_profile("iclab", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("iclab")
