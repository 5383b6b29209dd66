# Installs one pinned npm package ($2) below a folder ($1), without running
# its scripts. The certificates exist in this build stage alone.
set -eu
if [ -s /fetch/ca.crt ]; then
  export NODE_EXTRA_CA_CERTS=/fetch/ca.crt
fi
mkdir -p "$1"
npm install --prefix "$1" --no-save --omit=dev --ignore-scripts \
  --no-audit --no-fund --no-update-notifier --fetch-retries=3 --cache /tmp/npm "$2"
rm -rf /tmp/npm
