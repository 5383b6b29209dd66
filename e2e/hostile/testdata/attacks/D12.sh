# A provider that repeats the key in its response.
code=$(ask -D /tmp/head -X POST -d '{"contents":[{"parts":[{"text":"please-echo-''my-headers"}]}]}' "$base$m:generateContent")
grep -qi 'canary''Key' /tmp/answer /tmp/head && hole "$(head -c 500 /tmp/answer)" || held "$code"
head -c 1500 /tmp/answer
