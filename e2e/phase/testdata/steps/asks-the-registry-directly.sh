# Requests the registry without a proxy. The test replaces ADDRESS with its IP address.
curl -sS --noproxy '*' -k --max-time 5 https://registry.example/direct
curl -sS -k --max-time 5 -x '' https://ADDRESS/direct
true
