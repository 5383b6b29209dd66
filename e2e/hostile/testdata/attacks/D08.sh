# Without a token, with a guess, and as another call.
good=$token
for token in '' x guess "$(echo $good | tr 'A-Y' 'B-Z')" "$good " "${good}x"; do refused "token" -X POST -d "$body" "$base$m:generateContent"; done
token=$good
refused call -X POST -d "$body" "$root/p1-verify-9.1/gemini$m:generateContent"
refused no-call -X POST -d "$body" "$root/gemini$m:generateContent"
