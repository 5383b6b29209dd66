// Counts its visits with a SQL client. The test replaces CLIENT with its command line.
import http from 'node:http';
import { execFile } from 'node:child_process';
const visit = `CLIENT`;
http.createServer((q, r) => execFile('sh', ['-c', visit], (e, out) => r.end('ok ' + (e ?? out)))).listen(3000, '0.0.0.0');
