#!/bin/sh
# Installs Debian's git-lfs for the tests, as root on Debian or Ubuntu, without its filters in the
# system's config of git. Without git-lfs the script prints what is missing and exits with 7. It is safe
# to run twice.
set -eu

say() { printf 'git-lfs: %s\n' "$*" >&2; }

if command -v git-lfs >/dev/null; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  say "git-lfs is missing, and this script installs it only as root on Debian or Ubuntu"
  exit 7
fi
say "installing git-lfs"
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get -qq -o DPkg::Lock::Timeout=120 update && apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends git-lfs; } >&2 </dev/null; then
  say "cannot install git-lfs"
  exit 7
fi
git lfs uninstall --system --skip-repo >&2
