// Responds with the reply of its database.
import http from 'node:http';
import net from 'node:net';
http.createServer((req, res) => {
  if (req.url === '/ready') return res.end('ready');
  const c = net.connect(4000, 'db', () => c.write('x'));
  c.on('data', (d) => res.end('ok ' + d + ' ' + process.env.FLAVOUR + ' ' + (process.env.MOTTO ?? 'none')));
  c.on('error', (e) => { res.statusCode = 502; res.end(e.code); });
}).listen(3000, '0.0.0.0');
