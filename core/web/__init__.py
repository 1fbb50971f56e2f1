"""The board in the browser: a web server whose computation is done by worker processes.

README.md lists the modules in reading order; docs/web.md is the manual.
"""

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
"""A JSON object: a question, an answer, or a part of one."""
Actions = Mapping[str, Callable[[Json], Json]]
"""Functions that answer questions, by the name of the action."""
