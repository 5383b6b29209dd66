// Responds with ok. GET /quit ends it with the exit code CODE, and GET /others kills the other
// processes of its container.
import http from 'node:http';
import fs from 'node:fs';
fs.writeFileSync('/tmp/pid', String(process.pid));
function killOthers() {
  for (const p of fs.readdirSync('/proc')) {
    if (p > 1 && p != process.pid) try { process.kill(+p, 'SIGKILL'); } catch {}
  }
}
http.createServer((req, res) => {
  res.end('ok');
  if (req.url === '/quit') setTimeout(() => process.exit(CODE), 10);
  if (req.url === '/others') setTimeout(killOthers, 10);
}).listen(3000, '0.0.0.0');
