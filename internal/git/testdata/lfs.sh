#!/bin/sh
# Filters like those of git-lfs: lfs.sh clean prints the pointer of its input, lfs.sh smudge prints
# the content of a pointer from .git/lfs, or the pointer.
set -eu
in=$(mktemp)
trap 'rm -f "$in"' EXIT
cat >"$in"
case $1 in
clean)
	if [ ! -s "$in" ] || head -c 43 "$in" | grep -q '^version https://git-lfs.github.com/spec/v1'; then
		cat "$in"
	else
		printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' \
			"$(sha256sum <"$in" | cut -d' ' -f1)" "$(wc -c <"$in" | tr -d ' ')"
	fi
	;;
smudge)
	oid=$(sed -n 's/^oid sha256://p' "$in")
	from=$(git rev-parse --git-common-dir)/lfs/objects/$(echo "$oid" | cut -c1-2)/$(echo "$oid" | cut -c3-4)/$oid
	if [ -f "$from" ]; then cat "$from"; else cat "$in"; fi
	;;
esac
