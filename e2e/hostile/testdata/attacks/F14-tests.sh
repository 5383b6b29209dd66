# The tests, by path.
empty ls /workspace/tests
empty grep -rls 'canary''Tests' $PLACES
