# Looks around in the container of a preparation, and tries to write and to connect.
echo "uid $(id -u)"
ls -d /workspace/* /workspace/tests/* /workspace/specs/*
env
touch .git/mine
curl -sS https://other.example/prepare
curl -sS -k --noproxy '*' --max-time 5 https://registry.example/direct
true
