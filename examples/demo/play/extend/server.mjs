// Short links: turns long addresses into short codes and counts their use.
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { Store } from './store.mjs';
import { BadRequest, chosenCode, readObject, webAddress } from './input.mjs';

const store = new Store(fileURLToPath(new URL('./data/links.json', import.meta.url)));

const routes = [
  ['GET', /^\/health$/, (req, res) => send(res, 200, { status: 'ok' })],
  ['GET', /^\/links$/, list],
  ['POST', /^\/links$/, shorten],
  ['GET', /^\/links\/([^/]+)$/, show],
  ['DELETE', /^\/links\/([^/]+)$/, remove],
  ['GET', /^\/([^/]+)$/, visit],
];

async function shorten(req, res) {
  const wish = await readObject(req);
  const url = webAddress(wish.url);
  const code = wish.code === undefined ? undefined : chosenCode(wish.code);
  const known = store.byURL(url);
  if (!known && store.taken(code)) return send(res, 409, { error: 'this code is taken' });
  const link = known ?? store.add(url, code);
  send(res, known ? 200 : 201, { code: link.code, url: link.url });
}

function show(req, res, code) {
  const link = store.byCode(code);
  if (!link) return send(res, 404, { error: 'there is no link with this code' });
  send(res, 200, { code: link.code, url: link.url, hits: link.hits });
}

function list(req, res) {
  send(res, 200, { links: store.newestFirst() });
}

function remove(req, res, code) {
  if (!store.remove(code)) return send(res, 404, { error: 'there is no link with this code' });
  res.writeHead(204).end();
}

function visit(req, res, code) {
  const link = store.hit(code);
  if (!link) return send(res, 404, { error: 'there is no link with this code' });
  res.writeHead(302, { Location: link.url }).end();
}

function send(res, status, body) {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body) + '\n');
}

async function handle(req, res) {
  const path = req.url.split('?', 1)[0];
  for (const [method, pattern, action] of routes) {
    const match = req.method === method && pattern.exec(path);
    if (match) return action(req, res, ...match.slice(1));
  }
  send(res, 404, { error: 'there is nothing at this address' });
}

const server = http.createServer((req, res) => {
  handle(req, res).catch((err) => {
    if (!(err instanceof BadRequest)) console.error(err);
    if (res.headersSent) return res.destroy();
    const bad = err instanceof BadRequest;
    send(res, bad ? 400 : 500, { error: bad ? err.message : 'something went wrong here' });
  });
});

server.listen(3000, '0.0.0.0');
