"""Build the manual as a site: `python docs/site/build.py` writes `build/manual/index.html`.

The pages of `docs/` are copied, and generated ones are added: a page for each variant, the commands
with their options, hooks, interfaces and the Python API from docstrings. Files of the repository that
pages link to become pages too. A broken link, a missing picture or a page that is in no table of
contents is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

SITE = Path(__file__).resolve().parent
DOCS = SITE.parent
ROOT = DOCS.parent
BUILD = ROOT / "build"
PAGES, HTML = BUILD / "manual-pages", BUILD / "manual"

_LINK = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".toml": "toml", ".sh": "sh"}
PICTURES = (".svg", ".png")

PYTHON = """# The Python API

Names of `import variant_ai`, from their docstrings. [From a program](../api.md) has examples.

```{eval-rst}
.. automodule:: variant_ai.api
   :members:
   :imported-members:
```
"""
HOOKS = """# Hooks

What a plugin may register. [Plugins](../plugins.md) explains how.

```{eval-rst}
.. automodule:: variant_ai.plugins.hookspecs
   :members:
```
"""
INTERFACES = """# Interfaces

The abstract classes that plugins implement, from the lowest room to the highest.
"""
INTERFACE = """
## {title}

```{{eval-rst}}
.. automodule:: {module}
   :members:
   :member-order: bysource
```
"""
MODULES = {
    "Rules": "variant_ai.core.rules.interface",
    "Encoders": "variant_ai.core.encoding.interface",
    "Networks": "variant_ai.core.nets.interface",
    "Evaluators": "variant_ai.core.inference.interface",
    "Search": "variant_ai.core.search.interface",
    "Trainer": "variant_ai.core.train.interface",
}


class Pages:
    """The folder of pages that Sphinx reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[Path, str] = {}
        """Files and folders of the repository that are pages, and the name of the page."""
        self.broken: list[str] = []

    def copy(self, source: Path, name: str) -> None:
        """Copy a page of Markdown with its links rewritten for its new place."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        target.write_text(self.rewritten(text, source.parent, target), encoding="utf-8")

    def rewritten(self, text: str, origin: Path, target: Path) -> str:
        """Return Markdown with links to files of the repository changed to pages of the site.

        origin: the folder that links of the text start from. target: the file it is written to.
        """
        code = [match.span() for match in _CODE.finditer(text)]

        def inside_pages(path: Path) -> bool:
            found = path.resolve()
            return path.suffix in PICTURES and found.is_file() and found.is_relative_to(PAGES)

        def replace(match: re.Match[str]) -> str:
            linked = match["target"]
            inside = any(start <= match.start() < end for start, end in code)
            if inside or not linked or "://" in linked or linked.startswith("mailto:"):
                return match[0]
            if inside_pages(target.parent / linked):  # pictures of a generated page
                return match[0]
            path = (origin / linked).resolve()
            if not path.exists() or not path.is_relative_to(ROOT):
                self.broken.append(f"{target.relative_to(self.folder)}: {linked}")
                return match[0]
            page = self.folder / self.page_of(path)
            way = os.path.relpath(page, target.parent).replace(os.sep, "/")
            return f"{match['before']}{way}{match['anchor'] or ''})"

        return _LINK.sub(replace, text)

    def page_of(self, path: Path) -> str:
        """Return the name of the page or picture that stands for a file or folder."""
        if path in self.files:
            return self.files[path]
        inside = path.relative_to(ROOT)
        if path == ROOT / "README.md":
            name = "readme.md"
        elif path == ROOT / "CHANGELOG.md":
            name = "changelog.md"
        elif path.is_relative_to(DOCS):
            name = str(path.relative_to(DOCS))
        elif path.suffix in (".md", *PICTURES):
            name = f"files/{inside}"
        else:
            name = f"files/{inside}.md"
        self.files[path] = name
        if path.is_relative_to(DOCS) and path.suffix == ".md":
            return name
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in PICTURES:
            shutil.copyfile(path, target)
        elif path.suffix == ".md":
            self.copy(path, name)
            if name != "changelog.md":
                target.write_text("---\norphan: true\n---\n" + target.read_text("utf-8"), "utf-8")
        else:
            target.write_text(self._file_page(path), encoding="utf-8")
        return name

    def _file_page(self, path: Path) -> str:
        """Page of a file that is not Markdown, or of a folder."""
        lines = ["---", "orphan: true", "---", f"# {path.relative_to(ROOT)}", ""]
        if path.is_dir():
            lines += [f"- `{p.name}{'/' if p.is_dir() else ''}`" for p in sorted(path.iterdir())]
            return "\n".join(lines) + "\n"
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return "\n".join([*lines, f"A file of {path.stat().st_size:,} bytes.", ""])
        fence = "`" * 6
        return "\n".join([*lines, fence + LANGUAGES.get(path.suffix, "text"), text, fence, ""])


def prepare() -> list[str]:
    """Write all pages to `build/manual-pages`; return links that lead nowhere."""
    from command_pages import commands_page
    from variant_pages import write_variant_pages

    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    pages = Pages(PAGES)
    for pictures in DOCS.glob("*pictures"):
        shutil.copytree(pictures, PAGES / pictures.name)
    shutil.copytree(SITE / "_static", PAGES / "_static")
    shutil.copyfile(SITE / "index.md", PAGES / "index.md")
    for page in sorted(DOCS.glob("*.md")):
        pages.copy(page, page.name)
    pages.page_of(ROOT / "CHANGELOG.md")
    for name in write_variant_pages(PAGES / "variants"):
        page = PAGES / "variants" / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        page.write_text(pages.rewritten(text, DOCS / "site", page), encoding="utf-8")
    reference = PAGES / "reference"
    reference.mkdir()
    texts = {
        "commands": commands_page(),
        "python": PYTHON,
        "hooks": HOOKS,
        "interfaces": INTERFACES
        + "".join(INTERFACE.format(title=t, module=m) for t, m in MODULES.items()),
    }
    for name, text in texts.items():
        (reference / f"{name}.md").write_text(text, encoding="utf-8")
    return pages.broken


def main() -> int:
    """Prepare the pages and run Sphinx; return its exit status."""
    os.environ["VARIANT_AI_PLUGINS"] = ""
    os.environ["COLUMNS"] = "80"
    if broken := prepare():
        print("links that lead nowhere:", *broken, sep="\n  ", file=sys.stderr)
        return 1
    from sphinx.cmd.build import build_main

    shutil.rmtree(HTML, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-j", "auto", "-c", str(SITE)]
    status = build_main([*options, str(PAGES), str(HTML)])
    if status == 0:
        print(f"the manual: {os.path.relpath(HTML / 'index.html')}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
