// A status line with control sequences for a terminal.
import net from 'node:net';
net.createServer((c) => {
  c.on('error', () => {});
  c.end('HTTP/1.1 500 \x1b]0;owned\x07\x1b[2J\u202e\r\nContent-Length: 0\r\n\r\n');
}).listen(3000, '0.0.0.0');
