#!/bin/bash
# Builds a release of the current commit in dist/: an archive for each system and processor, the demo's
# images for this engine, a bill of materials and SHA256SUMS. The same commit, Go and images produce
# the same bytes in every clone. Needs GNU tar.
#   release.sh [--without-images]
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOWORK=off GOFLAGS='-trimpath -buildvcs=false' GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT=
umask 022
unset ABL_HELPER ABL_GATEWAY # set by make

say() { printf 'release: %s\n' "$*" >&2; }

# Packs members of a folder as an archive without traces of this machine.
pack() {
  tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$1" -c "${@:2}" | gzip -n
}

# Prints path, version and licence of each module that is linked into the programs. It fails if NOTICE
# does not name the licence of a module.
modules() {
  go version -m "$@" | awk -F'\t' '
    FILENAME == "NOTICE" { if (split($0, f, /  +/) == 3) licence[f[2]] = f[3] }
    $2 == "dep" { version[$3] = $4 }
    END {
      for (m in version) {
        if (!(m in licence)) { print "release: NOTICE does not name " m " and its licence" >"/dev/stderr"; bad = 1 }
        print m "\t" version[m] "\t" licence[m] | "sort"
      }
      close("sort")
      exit bad
    }' NOTICE -
}

# Prints the texts of the licences of Go and of modules.
licences() {
  local dir file files line module version
  line=$(printf '=%.0s' {1..80})
  printf 'The programs of abl contain parts of Go and of the modules below. Their licences follow.\n'
  printf '\n%s\nGo %s: LICENSE\n\n' "$line" "$(go env GOVERSION)"
  cat "$(go env GOROOT)/LICENSE"
  while IFS=$'\t' read -r module version _; do
    dir=$(go list -m -f '{{.Dir}}' "$module")
    files=$(cd "$dir" && find . -type f -regextype posix-egrep -iregex '.*/(licen[cs]e|notice|copying|patents)([.-][^/]*)?' ! -name '*.go' | sort)
    if [ -z "$files" ]; then say "$module $version has no licence in $dir" && return 1; fi
    for file in $files; do
      printf '\n%s\n%s %s: %s\n\n' "$line" "$module" "$version" "${file#./}"
      cat "$dir/$file"
    done
  done
}

# Prints modules as a bill of materials, CycloneDX 1.5.
bill() {
  awk -F'\t' -v version="$version" -v built="$built" '
    function component(type, name, version, licence, at) {
      at = "pkg:golang/" name "@" version; gsub(/\+/, "%2B", at)
      return sprintf("{\"type\":\"%s\",\"bom-ref\":\"%s\",\"name\":\"%s\",\"version\":\"%s\",\"licenses\":[{\"expression\":\"%s\"}],\"purl\":\"%s\"}", type, at, name, version, licence, at)
    }
    BEGIN {
      print "{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.5\",\"version\":1,\"metadata\":{\"timestamp\":\"" built "\",\"component\":"
      print component("application", "abl", version, "Apache-2.0") "},\"components\":["
    }
    { print (NR > 1 ? "," : "") component("library", $1, $2, $3) }
    END { print "]}" }'
}

if [ -n "$(git status --porcelain)" ]; then say "the work tree has uncommitted changes (git status): commit them first" && exit 2; fi
version=$(git describe --tags --always --abbrev=12)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
built=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
rm -rf dist && mkdir dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work"/{bin,each/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}}
for arch in amd64 arm64; do
  for name in abl-cmd abl-gateway; do # without a version, because image tags depend on their bytes
    GOOS=linux GOARCH=$arch go build -ldflags '-s -w' -o "$work/bin/$name-linux-$arch" ./cmd/$name
  done
  for os in linux darwin; do
    say "building for $os $arch"
    GOOS=$os GOARCH=$arch go build -ldflags "-s -w -X main.version=$version -X main.revision=$(git rev-parse HEAD) -X main.built=$built" \
      -o "$work/$os-$arch/abl-$version-$os-$arch/bin/" ./cmd/{abl,agent-learner,code-commit}
  done
done
modules "$work"/bin/* "$work"/*-*/abl-*/bin/* >"$work/modules"
licences <"$work/modules" >"$work/each/THIRD_PARTY_NOTICES"
(printf 'std\t%s\tBSD-3-Clause\n' "$(go env GOVERSION)" && cat "$work/modules") | bill | tee "$work/each/sbom.cdx.json" >"dist/abl-$version.cdx.json"
cp -r ./*.md LICENSE NOTICE docs examples "$work/each"
abl=$(echo "$work/$(go env GOHOSTOS)-$(go env GOHOSTARCH)"/*/bin)/abl
"$abl" man >"$work/each/share/man/man1/abl.1"
"$abl" completion bash >"$work/each/share/bash-completion/completions/abl"
"$abl" completion zsh >"$work/each/share/zsh/site-functions/_abl"
"$abl" completion fish >"$work/each/share/fish/vendor_completions.d/abl.fish"
for top in "$work"/*-*/abl-*; do
  cp -r "$work/bin" "$work/each/." "$top"
  pack "${top%/*}" "${top##*/}" >"dist/${top##*/}.tar.gz"
done
if [ "${1:-}" != --without-images ]; then # the engine's archive of an image is always the same
  "$abl" images build tools >&2 && "$abl" images save "$work/images.tar" tools >&2
  gzip -n <"$work/images.tar" >"dist/abl-$version-images-linux-$(docker version -f '{{.Server.Arch}}').tar.gz"
fi
(cd dist && sha256sum -- abl-* | tee SHA256SUMS >&2)
