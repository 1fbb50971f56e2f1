"""Jinja templates beside the modules that fill them."""

from __future__ import annotations

from pathlib import Path


def rendered(template: Path, **values: object) -> str:
    """Return the text of a template with these values, which are escaped in HTML and SVG."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=select_autoescape(("html.jinja", "svg.jinja")),
    )
    return environment.get_template(template.name).render(values)
