// A response header that never ends.
import net from 'node:net';
net.createServer((c) => {
  c.on('error', () => {});
  c.write('HTTP/1.1 200 OK\r\n');
  setInterval(() => c.write('X-A: ' + 'y'.repeat(4000) + '\r\n'), 5);
}).listen(3000, '0.0.0.0');
