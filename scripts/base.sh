#!/bin/bash
# Builds the base of abl's images, for machines without access to a registry. As root on Debian or
# Ubuntu it builds Debian's minimal system with mmdebstrap and imports it as abl/debian:bookworm. It
# does nothing if that image exists, if a registry responds, or if the machine does not permit it;
# then `abl images build` prints what to do. It is safe to run twice. ABL_DEBIAN_MIRROR names another
# mirror.
set -euo pipefail

suite=bookworm
image=abl/debian:$suite
mirror=${ABL_DEBIAN_MIRROR:-http://deb.debian.org/debian}
mirror=${mirror%/}
say() { printf 'base: %s\n' "$*" >&2; }

has() { docker image inspect "$1" >/dev/null 2>&1; }

give_up() {
  say "$1"
  exit 7
}

is_debian() {
  # shellcheck source=/dev/null
  (. /etc/os-release && case " ${ID:-} ${ID_LIKE:-} " in *" debian "* | *" ubuntu "*) exit 0 ;; esac; exit 1) 2>/dev/null
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"; }

install_mmdebstrap() { apt_get install -y --no-install-recommends mmdebstrap debian-archive-keyring </dev/null; }

# If the mirror has Debian's layout, security updates are in a folder next to it.
sources() {
  echo "deb $mirror $suite main"
  case $mirror in
    */debian)
      echo "deb $mirror $suite-updates main"
      echo "deb $mirror-security $suite-security main"
      ;;
  esac
}

# Writes the system as a tar archive to standard output. The hook links /bin to /usr before the first
# package is installed, so that usrmerge, which depends on all of Perl, is not needed.
bootstrap() {
  sources | TMPDIR=/var/tmp mmdebstrap --mode=root --variant=minbase --format=tar \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include=usr-is-merged \
    --aptopt='Acquire::Retries "3"' --aptopt='Acquire::Languages "none"' \
    --aptopt='APT::Install-Recommends "false"' --aptopt='APT::Install-Suggests "false"' \
    --dpkgopt=force-unsafe-io \
    --dpkgopt=path-exclude='/usr/share/doc/*' --dpkgopt=path-include='/usr/share/doc/*/copyright' \
    --dpkgopt=path-exclude='/usr/share/man/*' --dpkgopt=path-exclude='/usr/share/info/*' \
    --dpkgopt=path-exclude='/usr/share/locale/*' \
    "$suite" - - 2> >(grep --line-buffered -E '^([WE]:|I: (downloading|extracting|installing|creating))' >&2)
}

# The engine also imports a truncated archive, so the image gets its name only at the end.
load() {
  bootstrap | docker import -c 'LABEL abl.image=debian' -c 'CMD ["/bin/sh"]' \
    -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$image-new" >/dev/null || return
  docker tag "$image-new" "$image" && docker rmi "$image-new" >/dev/null
}

command -v docker >/dev/null || exit 0
if [ "$(id -u)" != 0 ] || ! is_debian || has "$image"; then exit 0; fi
if [ "$(docker version -f '{{.Server.Arch}}')" != "$(dpkg --print-architecture)" ]; then exit 0; fi
if timeout 60 docker pull -q debian:$suite-slim >/dev/null 2>&1 </dev/null; then exit 0; fi
say "no registry responds"
if ! command -v mmdebstrap >/dev/null; then
  say "installing mmdebstrap"
  install_mmdebstrap >/dev/null 2>&1 || { apt_get update && install_mmdebstrap; } >/dev/null ||
    give_up "apt-get could not install mmdebstrap"
fi
say "making Debian $suite, in about half a minute"
load || give_up "mmdebstrap or the engine failed: is there a Debian at $mirror? Name another mirror with ABL_DEBIAN_MIRROR"
