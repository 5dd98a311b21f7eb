"""What a run does (`Progress`) and what it found, for people (`render`) and for machines (`as_json`)."""

from typing import TYPE_CHECKING

from textgrad_engine.lazily import lazily

if TYPE_CHECKING:
    from textgrad_engine.report.public import *

lazily(__name__)
