"""Check a built site offline: links, anchors, alternative texts, the order of headings, the API page.

``python .ci/check_site.py build/site`` prints every fault and exits with code 1 if there is one.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aucmax

#: Pages that Sphinx and the theme make, and whose headings are theirs.
THEIRS = ("genindex", "search", "py-modindex")


class Page(HTMLParser):
    """What matters of a page: links, anchors, pictures, headings, and its language and title."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.without_text: list[str] = []
        self.headings: list[int] = []
        self.language, self.title = "", False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name, value in attrs if name in ("id", "name") and value}
        if tag == "html":
            self.language = found.get("lang") or ""
        if tag == "title":
            self.title = True
        if tag == "img" and "alt" not in found:  # an empty text marks a picture as decoration
            self.without_text.append(found.get("src") or "")
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.headings.append(int(tag[1]))
        for name in ("href", "src"):
            if found.get(name):
                self.links.append(found[name] or "")


def faults(site: Path) -> list[str]:
    """Return what is wrong with the pages of a site."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        name = str(path.relative_to(site))
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue  # not offline
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name}: {link} leads nowhere")
            anchors = pages[target].anchors if target in pages else None
            if parts.fragment and anchors is not None and unquote(parts.fragment) not in anchors:
                found.append(f"{name}: {link} has no such anchor")
        found += [f"{name}: the picture {source} has no text" for source in page.without_text]
        if not page.language or not page.title:
            found.append(f"{name}: no language or no title")
        if path.stem not in THEIRS:
            if page.headings.count(1) != 1:
                found.append(f"{name}: {page.headings.count(1)} headings of the first level")
            for before, after in zip(page.headings, page.headings[1:], strict=False):
                if after > before + 1:
                    found.append(f"{name}: a heading of level {after} follows one of level {before}")
    api = {urlsplit(link).path for link in pages[site / "api.html"].links}
    for public in aucmax.__all__:
        if f"api/aucmax.{public}.html" not in api:
            found.append(f"api.html: no link to {public}")
    return found


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    found = faults(site)
    print("\n".join(found) or f"The pages of {site.name} are in order.")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
