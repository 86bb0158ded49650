"""Makes `gym.make("agentgym/Sokoban-v0")` work after `import gymnasium` alone.

Gymnasium 1.0 dropped the loading of the entry-point group `gymnasium.envs`, so an installed suite
stays unknown until somebody imports it, which no RL library does for an id that it got as text.
`agentgym_autoload.pth` imports this module whenever Python starts; it waits for
`import gymnasium` and then registers the ids. It imports nothing itself before that.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` itself would cost every start of Python some milliseconds.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _AfterGymnasium:
    """Finds what the other finders find, with one step added to the loading of gymnasium."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called for every import; acts on that of gymnasium alone.

        Looking for gymnasium is not importing it, so only the loading ends the wait.
        """
        if name != "gymnasium":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (f.find_spec(name, path, target) for f in others if hasattr(f, "find_spec"))
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = self._then_register(spec.loader.exec_module)
        return spec

    def _then_register(self, load: Callable[..., None]) -> Callable[..., None]:
        def load_and_register(module: ModuleType) -> None:
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            # While agentgym itself is being imported it registers its ids on its own.
            if "agentgym" not in sys.modules:
                __import__("agentgym")

        return load_and_register


sys.meta_path.insert(0, _AfterGymnasium())
