"""Whether output is coloured, where the user says so: NO_COLOR, FORCE_COLOR, CLICOLOR, CLICOLOR_FORCE."""

import os


def wanted() -> bool | None:
    """True or False as the user wishes; None: on a terminal only."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if os.environ.get("CLICOLOR") == "0" or os.environ.get("TERM") == "dumb":
        return False
    return None
