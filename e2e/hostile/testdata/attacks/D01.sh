# The key in files that a role can read.
[ ${#GEMINI_API_KEY} -gt 10 ] && held 'a token' || odd 'no token'
empty grep -rls 'canary''Key' $PLACES
empty sh -c 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr "\0" "\n" | grep "canary[K]ey"'
empty ls /run/secrets /var/run/secrets /abl/in/setup.json
empty sh -c 'cat "$HOME"/.gemini/* | grep canary'
empty sh -c 'ls -d /proc/[0-9]* | while read p; do tr "\0" "\n" < $p/cmdline | grep -x "abl-gateway"; done'
