"""What the README leads to is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PNG = b"\x89PNG\r\n\x1a\n"


def test_its_links_lead_somewhere() -> None:
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]

    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_pictures_are_there_in_light_and_dark_and_small() -> None:
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', README)

    assert sorted(pictures) == ["docs/images/dashboard-dark.png", "docs/images/dashboard-light.png"]
    for picture in pictures:
        content = (ROOT / picture).read_bytes()
        assert content.startswith(PNG)
        assert len(content) < 200_000
