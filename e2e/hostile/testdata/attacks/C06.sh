# Git's locks, so that abl waits for ever.
for l in index.lock HEAD.lock config.lock packed-refs.lock refs/heads/main.lock refs/heads/master.lock; do fails 'Read-only|denied' sh -c ": > .git/$l"; done
