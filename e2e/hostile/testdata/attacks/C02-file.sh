# A .git file that points elsewhere.
fails 'directory|Read-only|denied' sh -c 'echo "gitdir: ../.git" > .git'
fails 'Read-only|denied' sh -c 'echo ../../.git > .git/commondir'
fails 'Read-only|denied' sh -c 'echo /tmp > .git/gitdir'
