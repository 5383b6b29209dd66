#!/bin/sh
# Writes agent-config/codeRollup.txt, the code that the model is shown: every UTF-8 text
# file that git does not ignore, but for files with a private key and for the names
# below, in any folder. Text in another encoding is named, and not shown. Add here what else it need not see, or must not.
set -eu
set -- .
for name in '.env*' '*.pem' '*.key' '*.p12' '*.pfx' '*.keystore' '*.jks' \
  'id_rsa*' 'id_ed25519*' 'id_ecdsa*' '*-key.txt' .npmrc .netrc .pypirc \
  'credentials*' 'secrets.*' '*.sum' '*.lock' package-lock.json \
  npm-shrinkwrap.json pnpm-lock.yaml packages.lock.json gradle.lockfile; do
  set -- "$@" ":(exclude,glob,icase)**/$name"
done
files=$(mktemp)
trap 'rm -f "$files"' EXIT
git ls-files -z --cached --others --exclude-standard -- "$@" >"$files"
xargs -0 sh -ec 'for f; do
  [ -f "$f" ] && [ ! -L "$f" ] && { [ ! -s "$f" ] || LC_ALL=C grep -Iq -- . "$f"; } || continue
  ! command -v iconv >/dev/null || iconv -f UTF-8 -t UTF-8 <"$f" >/dev/null 2>&1 || {
    echo "--- NOT SHOWN $f: it is not UTF-8 text ---"
    echo "codeRollup.sh: left out, since it is not UTF-8 text: $f" >&2
    continue
  }
  ! grep -q -- "PRIVATE KEY-\{5\}" "$f" || continue
  echo "--- FILE $f ---"; cat -- "$f"; echo
done' - <"$files" >agent-config/codeRollup.txt
