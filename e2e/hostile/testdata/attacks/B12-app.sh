# The source, the specs and the tests.
empty ls -A .git
fails 'Read-only|denied' touch .git/x
empty grep -rls 'canary''Tests\|canary''Spec' $PLACES --exclude-dir=src
