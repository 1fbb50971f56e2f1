"""SVG to PNG by resvg, which needs no other program and no display."""

from __future__ import annotations

from variant_ai.core.errors import VariantAIError


def png_bytes(svg: str, *, width: int | None = None) -> bytes:
    """The picture as PNG, `width` pixels wide, by default as wide as the SVG says.

    Raises VariantAIError if the text is no SVG.
    """
    from resvg_py import svg_to_bytes

    try:
        return bytes(
            svg_to_bytes(
                svg_string=svg, width=width, font_files=_fonts(), font_family="DejaVu Sans"
            )
        )
    except ValueError as error:
        raise VariantAIError(f"the SVG cannot be drawn: {error}") from error


def _fonts() -> list[str]:
    """The font that comes with matplotlib: some machines have none."""
    from matplotlib import get_data_path

    return [f"{get_data_path()}/fonts/ttf/{name}.ttf" for name in ("DejaVuSans", "DejaVuSans-Bold")]
