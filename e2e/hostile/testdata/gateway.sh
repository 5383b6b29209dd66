# Functions for the scripts that send requests to the gateway.
#
#   ask ARGUMENTS…            sends a request with the call's token; prints the status, leaves /tmp/answer
#   refused NAME ARGUMENTS…   the same request must be refused
base=$GOOGLE_GEMINI_BASE_URL; root=$(echo $base | cut -d/ -f1-3); token=$GEMINI_API_KEY; m=/v1beta/models/gemini-2.5-pro
body='{"contents":[{"parts":[{"text":"x"}]}]}'
ask() { curl -s -m 20 --connect-timeout 2 -o /tmp/answer -w '%{http_code}' -H "x-goog-api-key: $token" -H 'content-type: application/json' "$@"; }
refused() { what=$1; shift; code=$(ask "$@"); case $code in 4??|000) held "$what: $code";; *) hole "$what: $code $(head -c 300 /tmp/answer)";; esac; }
