// An endless log.
import http from 'node:http';
const line = 'x'.repeat(65535) + '\n';
let n = 0;
const go = () => {
  while (n++ < 4000) if (!process.stdout.write(line)) return process.stdout.once('drain', go);
};
go();
http.createServer((req, res) => res.end('ok')).listen(3000, '0.0.0.0');
