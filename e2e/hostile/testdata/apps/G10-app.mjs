// More memory than the container has.
import http from 'node:http';
const all = [];
setInterval(() => {
  for (let i = 0; i < 50; i++) all.push(Buffer.alloc(8 << 20, 1));
}, 1);
http.createServer((req, res) => res.end('ok')).listen(3000, '0.0.0.0');
