"""What all tests share: property tests try the same examples everywhere, so that a red run can be run again."""

from hypothesis import settings

settings.register_profile("same-everywhere", derandomize=True, deadline=None, database=None)
settings.load_profile("same-everywhere")
