// A package registry for npm with one package. It prints every request.
import https from 'node:https';
import fs from 'node:fs';
const file = (name) => fs.readFileSync('/site/' + name);
const about = {name: 'tiny', 'dist-tags': {latest: '1.0.0'}, versions: {'1.0.0': {
  name: 'tiny', version: '1.0.0', dist: {tarball: 'https://registry.example/tiny/-/tiny-1.0.0.tgz'}}}};
https.createServer({key: file('key.pem'), cert: file('cert.pem')}, (req, res) => {
  console.log(req.method, req.headers.host + req.url);
  if (req.url === '/tiny') return res.end(JSON.stringify(about));
  if (req.url === '/tiny/-/tiny-1.0.0.tgz') return res.end(file('tiny.tgz'));
  res.writeHead(404).end('{}');
}).listen(443, () => console.log('listens'));
