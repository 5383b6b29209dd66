#!/bin/bash
# Makes sure that abl can build its images where no registry answers: as root on
# Debian or Ubuntu it makes Debian's minimal system with debootstrap and imports
# it as abl/debian:bookworm, on which `abl images build` then stands. Does
# nothing where one is there already, where a registry answers, or where it
# cannot: then `abl images build` says what to do. Safe to run twice.
# ABL_DEBIAN_MIRROR names another mirror.
set -euo pipefail

suite=bookworm
image=abl/debian:$suite
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

install_debootstrap() { apt_get install -y --no-install-recommends debootstrap debian-archive-keyring </dev/null; }

# Shows what debootstrap is at, without a line for each of its hundred packages.
bootstrap() {
  say "debootstrap $suite, about a minute"
  LC_ALL=C debootstrap --variant=minbase --force-check-gpg "$suite" "$root" ${ABL_DEBIAN_MIRROR:+"${ABL_DEBIAN_MIRROR%/}"} 2>&1 </dev/null |
    grep --line-buffered -vE '^I: (Retrieving|Validating|Extracting|Unpacking|Configuring) [a-z0-9]' >&2
}

# Security updates come from beside a mirror that is laid out like Debian's own.
configure() {
  sed -nE "s#^deb ([^ ]*/debian) $suite (.*)#deb \1 $suite \2\ndeb \1 $suite-updates \2\ndeb \1-security $suite-security \2#p" \
    "$root/etc/apt/sources.list" >"$root/sources"
  if [ -s "$root/sources" ]; then mv "$root/sources" "$root/etc/apt/sources.list"; else rm "$root/sources"; fi
  printf '%s "false";\n' APT::Install-Recommends APT::Install-Suggests >"$root/etc/apt/apt.conf.d/01-abl"
  echo 'Acquire::Languages "none";' >>"$root/etc/apt/apt.conf.d/01-abl"
  {
    printf 'path-exclude /usr/share/%s/*\n' doc man info locale
    echo 'path-include /usr/share/doc/*/copyright'
    echo force-unsafe-io
  } >"$root/etc/dpkg/dpkg.cfg.d/01-abl"
}

load() {
  local left_out=(dev/\* proc/\* sys/\* run/\* tmp/\* etc/hostname etc/resolv.conf 'var/cache/apt/*' 'var/cache/debconf/*-old'
    'var/lib/apt/lists/*' 'var/log/*' 'usr/share/man/*' 'usr/share/info/*' 'usr/share/locale/*' debootstrap)
  say "importing"
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  tar --numeric-owner --one-file-system -C "$root" "${left_out[@]/#/--exclude=./}" -c . |
    docker import -c 'LABEL abl.image=debian' -c 'CMD ["/bin/sh"]' \
      -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$image-new" >/dev/null || return
  # Half an archive is an image to the engine, too: it gets its name when all went well.
  docker tag "$image-new" "$image" && docker rmi "$image-new" >/dev/null
}

command -v docker >/dev/null || exit 0
if [ "$(id -u)" != 0 ] || ! is_debian || has "$image"; then exit 0; fi
if [ "$(docker version -f '{{.Server.Arch}}')" != "$(dpkg --print-architecture)" ]; then exit 0; fi
if timeout 60 docker pull -q debian:$suite-slim >/dev/null 2>&1 </dev/null; then exit 0; fi
say "no registry answers"
if ! command -v debootstrap >/dev/null; then
  say "installing debootstrap"
  install_debootstrap >/dev/null 2>&1 || { apt_get update && install_debootstrap; } >/dev/null ||
    give_up "apt-get could not install debootstrap"
fi
# debootstrap refuses a folder mounted nodev or noexec, as a /tmp in memory often is. In
# memory of our own nothing waits for the disk.
root=$(mktemp -d -p /var/tmp abl-base-XXXXXX)
trap 'umount -Rl "$root" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"
if [ "$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)" -gt 2000000 ]; then
  mount -t tmpfs -o size=1g,mode=755 abl-base "$root" 2>/dev/null || true
fi
bootstrap || give_up "debootstrap failed: is there a Debian at its mirror? Name another with ABL_DEBIAN_MIRROR"
configure
load || give_up "the engine did not take the base"
