"""Which certificates are believed: those of the system, or of SSL_CERT_FILE and SSL_CERT_DIR.

To read a whole list takes 20 ms where it is one file, so a process reads it once, however often it opens
Holdfast.
"""

import os
import ssl
from functools import lru_cache


def tls() -> ssl.SSLContext:
    """What every client of the process checks its peers by."""
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=4)
def _read(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The arguments are where the client looks by itself; they only tell one reading from another."""
    import httpx2

    return httpx2.create_ssl_context()
