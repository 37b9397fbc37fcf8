"""Takes the pictures of the web page that the documents show: `python tools/pictures.py`.

Needs Chromium, playwright and Pillow. The page is served from a folder with the bundled examples.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib.resources import files
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1280, "height": 800}
QUALITY = 82
VIEWS = (
    ("search", "#/all?q=一个人守着灯塔", "light", "li:nth-child(2) > .hit"),
    ("home", "#/devices?q=打开除卧室以外的灯", "dark", None),
)


def main() -> None:
    from PIL import Image

    import homing
    from homing.config import Settings
    from homing.server.application import create_app
    from tests.page.chromium import chromium
    from tests.server.live import live

    PICTURES.mkdir(exist_ok=True)
    examples = Path(str(files("homing") / "examples"))
    with tempfile.TemporaryDirectory() as folder, homing.open(f"{folder}/data", settings=Settings()) as app:
        shutil.copytree(examples / "skills", f"{folder}/skills")
        app.skills.scan(f"{folder}/skills")
        for text in sorted((examples / "library").glob("*.md")):
            app.documents.save("examples", text.stem, text.read_text(encoding="utf-8"))
        app.memory.remember("observation", "用户不吃辣，对花生过敏。")
        app.devices.load(examples / "home.json")
        app.documents.flush()
        app.engine.flush()
        with live(create_app(app)) as address, chromium() as browser:
            for name, place, scheme, click in VIEWS:
                context = browser.new_context(locale="zh-CN", color_scheme=scheme, viewport=SIZE)
                page = context.new_page()
                page.goto(f"{address}/{place}")
                page.wait_for_selector(click or ".device.meant")
                if click:
                    page.locator(click).first.click()
                page.wait_for_timeout(1500)
                taken = Image.open(BytesIO(page.screenshot()))
                taken.save(PICTURES / f"{name}.webp", quality=QUALITY, method=6)
                context.close()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
