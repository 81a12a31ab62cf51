"""A container's health check: does the address given answer with success? The image has no curl."""

import sys
import urllib.error
import urllib.request

try:
    urllib.request.urlopen(sys.argv[1], timeout=4).close()  # noqa: S310 - the address is docker-compose.yml's
except (OSError, urllib.error.URLError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
