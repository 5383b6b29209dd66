# Puts an npm package ($2, as name@version) into a folder ($1) without npm, which is not
# there yet. Its archive has to have the SHA-512 $3.
set -eu
mkdir -p "$1"
cat /etc/ssl/certs/ca-certificates.crt /fetch/ca.crt > "$1.crt"
curl -fsSL --retry 3 --cacert "$1.crt" -o "$1.tgz" "${NPM_REGISTRY}/${2%@*}/-/${2%@*}-${2#*@}.tgz"
sum=$(openssl dgst -sha512 -binary "$1.tgz" | base64 -w 0)
if [ "$sum" != "$3" ]; then
  echo "$2 has the SHA-512 $sum, want $3: the registry gave another one" >&2
  exit 1
fi
tar -xzf "$1.tgz" -C "$1" --strip-components=1 --no-same-owner
rm "$1.tgz" "$1.crt"
