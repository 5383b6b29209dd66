# The broker itself, with its token.
url=$(jq -r .url /abl/in/commands.json) token=$(jq -r .token /abl/in/commands.json)
[ -n "$token" ] || odd 'no token'
ask() { curl -s -m 10 -o /tmp/answer -w '%{http_code}' -H "Authorization: Bearer $token" "$@"; }
refused() { what=$1; shift; code=$(ask "$@"); case $code in [345]??|000) held "$what $code";; *) hole "$what: $code $(head -c 200 /tmp/answer)";; esac; }
good=$token token=guessed; refused token -X POST $url/run/hidden; refused token $url/list; token=; refused token -X POST $url/restart; token=$good
refused path --path-as-is -X POST "$url/run/../../abl/in/broker.json"
refused encoded -X POST "$url/run/..%2f..%2fabl%2fin%2fbroker.json"
refused name -X POST "$url/run/hidden%3Bid"
refused method -X PUT $url/run/hidden
refused method -X GET $url/run/hidden
refused unknown -X POST $url/exec
refused debug $url/debug/pprof/
refused file $url/abl/in/broker.json
refused connect -X CONNECT $url/run/hidden
ask $url/list >/dev/null; grep -q secret.mjs /tmp/answer && hole 'the list tells the commands' || held list
ask -X POST $url/run/hidden >/dev/null; grep -q canary /tmp/answer && hole output || held 'no output'
