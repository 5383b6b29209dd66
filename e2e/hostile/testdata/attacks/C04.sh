# Objects of another history.
fails 'Read-only|denied' sh -c 'mkdir -p .git/objects/info; echo ../../.abl/tests/.git/objects > .git/objects/info/alternates'
fails 'Read-only|denied' sh -c 'echo x > .git/objects/info/http-alternates'
fails 'Read-only|denied' sh -c 'echo x | git hash-object -w --stdin'
fails 'Read-only|denied' sh -c 'mkdir .git/refs/replace'
fails 'Read-only|denied' sh -c 'echo x > .git/shallow'
