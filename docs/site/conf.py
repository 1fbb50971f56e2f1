"""Settings of Sphinx for the manual; `docs/site/build.py` prepares the pages and runs it."""

import re
from typing import Any

from variant_ai import __version__

project = "variant-ai"
copyright = "its authors, GPL-3.0-or-later"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"variant-ai {__version__}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_copy_source = False
# Everything is served from one folder: no fonts or scripts of other hosts.
html_theme_options = {"top_of_page_buttons": []}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    "Position": "Position",
    "PositionRow": "PositionRow",
    "Planes": "Planes",
    "Policy": "Policy",
}
add_module_names = False
# Two hyphens begin an option.
smartquotes = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
# `jsonl` and `yaml` blocks with `…` in them are examples, not files.
suppress_warnings = ["misc.highlighting_failure"]


def plain_docstring(*event: Any) -> None:
    """Make reStructuredText of a docstring: names in backticks are code, indented blocks as they are."""
    lines: list[str] = event[-1]
    for index, line in enumerate(lines):
        line = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line)
        indented = (
            index + 2 < len(lines) and not lines[index + 1] and lines[index + 2][:4] == "    "
        )
        if indented and line and line[0] != " ":
            line += ":" if line.endswith(":") else " ::"
        lines[index] = line.replace("*", "\\*") if "``" not in line and "*" in line else line


def setup(app: Any) -> None:
    """Register the conversion with Sphinx."""
    app.connect("autodoc-process-docstring", plain_docstring)
