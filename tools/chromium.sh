#!/bin/sh
# Install Debian's Chromium where this user may, and else say what to install.
set -eu
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  exec apt-get install -y -qq --no-install-recommends chromium
fi
echo "make test-browser needs Chromium, which is not here." >&2
echo "Install it (on Debian: apt-get install chromium), or name one: CHROMIUM=/path/to/chromium make test-browser" >&2
exit 1
