# Hooks.
for h in pre-commit post-commit post-checkout fsmonitor-watchman reference-transaction; do
  fails 'Read-only|denied' sh -c "printf '#!/bin/sh\ntouch /tmp/P\n' > .git/hooks/$h"; done
fails 'Read-only|denied' mkdir .git/hooks2
