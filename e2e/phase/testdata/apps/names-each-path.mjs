// Responds to each path with its name. Two paths do not exist, and /busy fails two times of three.
// A request with the header "as: the contract says" gets the response of its contract instead.
import http from 'node:http';
let asked = 0;
http.createServer(async (req, res) => {
  const path = new URL(req.url, 'http://app').pathname;
  const asContract = req.headers.as === 'the contract says';
  const answer = (status, doc) => {
    res.writeHead(status, {'Content-Type': 'application/json'});
    res.end(JSON.stringify(doc) + '\n');
  };
  if (path === '/slow') await new Promise(done => setTimeout(done, 400));
  if (asContract && path === '/nugget') answer(200, {is: 'gold'});
  else if (asContract && path === '/coin') answer(200, {is: 'the coin'});
  else if (!asContract && path.startsWith('/busy') && ++asked % 3) answer(500, {error: 'busy'});
  else if (path === '/' || path === '/zzz') answer(404, {error: 'not found'});
  else answer(req.method === 'POST' ? 201 : 200, {is: 'the ' + path.slice(1)});
}).listen(3000, '0.0.0.0');
