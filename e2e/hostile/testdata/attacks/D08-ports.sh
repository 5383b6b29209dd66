# Other ports of the gateway, and its messages.
open=$($A ports gateway); [ "$open" = "8080 " ] && held "open: $open" || hole "open: $open"
code=$(ask "$base/v1beta/models"); grep -qi 'canary\|upstream\|127.0.0.1\|forward' /tmp/answer && hole "$(cat /tmp/answer)" || held "models $code"
