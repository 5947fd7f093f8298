"""Build hook: turns the top-level folders into the one import package `tile2c`."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FRONT_DOOR = "transpile/package"  # __init__.py, __main__.py and py.typed of `tile2c` itself
FOLDERS = ("transpile", "templates", "runtime")


class OnePackage(BuildHookInterface):  # type: ignore[type-arg]
    """A wheel gets the front door's files; an editable install gets links in .dev/tile2c."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            self._link_folders()
        else:
            build_data["force_include"][FRONT_DOOR] = "tile2c"

    def _link_folders(self) -> None:
        root = Path(self.root)
        package = root / ".dev" / "tile2c"
        package.mkdir(parents=True, exist_ok=True)
        sources = [root / name for name in FOLDERS]
        sources += [path for path in (root / FRONT_DOOR).iterdir() if path.is_file()]
        for source in sources:
            link = package / source.name
            link.unlink(missing_ok=True)
            link.symlink_to(Path("..", "..") / source.relative_to(root))
