// A redirect of the probe to the broker.
import http from 'node:http';
http.createServer((req, res) => {
  res.writeHead(302, { location: 'http://app:7070/list' });
  res.end();
}).listen(3000, '0.0.0.0');
