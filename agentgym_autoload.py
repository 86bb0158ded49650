"""Makes `gym.make("agentgym/Sokoban-v0")` work after `import gymnasium` alone.

Gymnasium 1.0 dropped the loading of the entry-point group `gymnasium.envs`, so an installed suite
stays unknown until somebody imports it, which no RL library does for an id that it got as text.
`agentgym_autoload.pth` imports this module when Python starts; it waits for `import gymnasium` and
then registers the ids. It imports nothing itself before that.
"""

import sys
from importlib.util import find_spec


class _AfterGymnasium:
    """Finds nothing itself; adds one step to the loading of gymnasium."""

    def find_spec(self, name, path=None, target=None):
        """Called for every import; acts on the first one of gymnasium, then steps aside."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _then_register(spec.loader.exec_module)
        return spec


def _then_register(load):
    def load_and_register(module):
        load(module)
        # While agentgym itself is being imported it registers its ids on its own.
        if "agentgym" not in sys.modules:
            import agentgym  # noqa: F401

    return load_and_register


sys.meta_path.insert(0, _AfterGymnasium())
