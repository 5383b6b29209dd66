# packs-a-release.sh DIR NAME BIN packs abl's programs in BIN as DIR/NAME.tar.gz.
set -e
mkdir -p "$1"
tar -I "gzip -1" -cf "$1/$2.tar.gz" --transform "s,^,$2/bin/," -C "$3" abl abl-cmd abl-gateway
