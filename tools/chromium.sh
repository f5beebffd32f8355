#!/bin/sh
# Install Debian's Chromium if this user may, else print what to install.
set -eu
if [ -n "${CHROMIUM:-}" ]; then
  command -v "$CHROMIUM" >/dev/null && exit 0
  echo "CHROMIUM names $CHROMIUM, which is not here: name one that is, or leave the variable out." >&2
  exit 1
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium && exit 0
  echo "apt-get could not install it: see above." >&2
fi
echo "make test-browser needs Chromium, which is not here." >&2
echo "Install it (on Debian: apt-get install chromium), or name one: CHROMIUM=/path/to/chromium make test-browser" >&2
exit 1
