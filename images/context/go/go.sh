# Puts Go at version $1 into /usr/local/go. The pinned one ($2) comes from the module
# proxy and has to have the hash $3; another one it gets itself, by the rules of the
# go command, which compares it with Go's checksum database.
set -eu
cat /etc/ssl/certs/ca-certificates.crt /fetch/ca.crt > /fetch/all.crt
export SSL_CERT_FILE=/fetch/all.crt GOPATH=/fetch/path GOCACHE=/fetch/cache CGO_ENABLED=0
module=golang.org/toolchain@v0.0.1-go$2.linux-$4
curl -fsSL --retry 3 --cacert "$SSL_CERT_FILE" -o /fetch/go.zip "$GOPROXY/golang.org/toolchain/@v/${module#*@}.zip"
python3 -m zipfile -e /fetch/go.zip /fetch/zip
cd /fetch/zip
hash=h1:$(find golang.org -type f | LC_ALL=C sort | xargs -d '\n' sha256sum | openssl dgst -sha256 -binary | base64)
if [ "$hash" != "$3" ]; then
  echo "go$2 has the hash $hash, want $3: the module proxy gave another one" >&2
  exit 1
fi
# Modules keep neither the modes nor the go.mod files of what is in them.
find "$module" -name _go.mod | while read -r file; do mv "$file" "${file%_go.mod}go.mod"; done
chmod 755 "$module"/bin/* "$module"/pkg/tool/*/*
if [ "$1" != "$2" ]; then
  GOTOOLCHAIN=go$1 "$module/bin/go" version
  module=$GOPATH/pkg/mod/golang.org/toolchain@v0.0.1-go$1.linux-$4
  chmod -R u+w "$module"
fi
mv "$module" /usr/local/go
cd /usr/local/go
find . -name testdata -prune -exec rm -rf {} +
find src -name '*_test.go' -delete
# What most programs import is compiled once, and not again by every container.
export GOTOOLCHAIN=local GODEBUG=installgoroot=all
bin/go install $(bin/go list -deps net/http/httptest database/sql html/template encoding/... testing/... log/... os/... compress/... archive/...)
