# The engine's socket, and other sockets.
empty ls /var/run/docker.sock /run/docker.sock /run/containerd /run/podman /run/systemd /run/dbus
empty find / -xdev -type s
empty sh -c "grep -v '^Num' /proc/net/unix | grep -v '@' | grep -v ' /abl/sockets/'"
fails 'ould.*connect' curl -sS -m 3 --unix-socket /abl/sockets/broker http://x/
fails 'ould.*connect|refused|resolve' curl -sS -m 3 http://127.0.0.1:2375/version
