# The source, by path and by URL.
empty ls /workspace/src
empty curl -s file:///workspace/src/lib/secret.mjs file:///src/lib/secret.mjs
empty grep -rls 'canary''Src' $PLACES
