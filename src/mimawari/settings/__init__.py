"""Every setting, read from the environment once; the specs' own names work too."""

from mimawari.settings.core import DEFAULTS, FILE, Settings, load_settings, names_of

__all__ = ["DEFAULTS", "FILE", "Settings", "load_settings", "names_of"]
