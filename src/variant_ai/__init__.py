"""variant-ai: strong neural engines for any chess variant a YAML spec can describe."""

__version__ = "0.1.0"
