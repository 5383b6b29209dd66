// Counts its visits in Redis.
import http from 'node:http';
import net from 'node:net';
http.createServer((q, r) => {
  const c = net.connect(6379, new URL(process.env.REDIS_URL).hostname, () => c.write('INCR visits\r\n'));
  c.on('data', (d) => { r.end('ok ' + d.toString().slice(1)); c.destroy(); });
}).listen(3000, '0.0.0.0');
