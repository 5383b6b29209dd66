#!/bin/sh
# Installs what the tests of pages need, and prints two lines: the path of the browser, and that of
# axe-core, which checks accessibility ("-" if it is not available). As root on Debian or Ubuntu it
# installs Debian's chromium. It downloads axe-core with npm into .cache. Without a browser it prints
# what is missing and exits with 7. It is safe to run twice.
set -eu

axe=4.14.1
sum=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
cache=$(cd "$(dirname "$0")/.." && pwd)/.cache/axe-core-$axe
say() { printf 'browser: %s\n' "$*" >&2; }

find_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

if ! browser=$(find_browser); then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "chromium is missing, and this script installs it only as root on Debian or Ubuntu"
    exit 7
  fi
  say "installing Debian's chromium, which takes about a minute"
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get -qq -o DPkg::Lock::Timeout=120 update && apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends chromium; } >&2 </dev/null; then
    say "cannot install chromium"
    exit 7
  fi
  browser=$(find_browser)
fi

if [ ! -f "$cache/axe.min.js" ]; then
  mkdir -p "$cache"
  if (cd "$cache" && npm pack --silent "axe-core@$axe" >/dev/null && echo "$sum  axe-core-$axe.tgz" | sha256sum -c - >/dev/null) 2>&1 >&2; then
    tar -xzOf "$cache/axe-core-$axe.tgz" package/axe.min.js >"$cache/axe.new" && mv "$cache/axe.new" "$cache/axe.min.js"
  else
    say "cannot download axe-core $axe with npm"
  fi
  rm -f "$cache"/*.tgz
fi
echo "$browser"
if [ -f "$cache/axe.min.js" ]; then echo "$cache/axe.min.js"; else echo -; fi
