// Shared by the tests: sends requests, remembers them, compares the answers.
import { execFileSync } from 'node:child_process';
import http from 'node:http';
import { isDeepStrictEqual } from 'node:util';

const base = process.env.ABL_APP_URL;

// App is the system as one test sees it.
export class App {
  sent = [];

  constructor(test) {
    this.test = test;
  }

  // fresh is an address that no test has used before.
  fresh() {
    return `https://example.com/${this.test}/${Date.now()}-${process.pid}`;
  }

  // ask sends a request and keeps status, location and body; body is what is
  // sent, as JSON unless it is a text.
  async ask(method, path, body) {
    const text = typeof body === 'object' ? JSON.stringify(body) : body;
    this.sent.push(`${method} ${path}${text === undefined ? '' : ` body ${text}`}`);
    this.last = await request(method, path, text);
    return this.last.json;
  }

  // shorten makes the code of an address.
  async shorten(url, more) {
    return (await this.ask('POST', '/links', { url, ...more }))?.code;
  }

  // want fails the test unless the last answer has this status, and its body is
  // what is wanted, or is found right.
  want(status, body) {
    const { json } = this.last;
    const right = typeof body === 'function' ? json !== undefined && body(json) : body === undefined || isDeepStrictEqual(json, body);
    if (this.last.status !== status || !right) this.fail();
  }

  // wantError is want for an answer that says what is wrong.
  wantError(status) {
    this.want(status, (json) => typeof json?.error === 'string' && json.error !== '');
  }

  // restart restarts the system and fails the test if it does not come back.
  restart() {
    this.sent.push('a restart');
    try {
      execFileSync('abl-cmd', ['restart'], { stdio: 'ignore' });
    } catch {
      throw new Error('the system did not come back');
    }
  }

  // fail ends the test with what was seen last.
  fail() {
    const { status, location, text } = this.last;
    if (!status) throw new Error(text);
    const seen = text.slice(0, 300).replace(/[\n\r\t]/g, ' ').trimEnd();
    throw new Error(`${status} ${seen}${location ? ` Location: ${location}` : ''}`);
  }
}

// request never fails: without an answer there is no status. Each has a connection
// of its own, which no restart breaks.
function request(method, path, body) {
  return new Promise((resolve) => {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    const req = http.request(base + path, { method, headers, agent: false, timeout: 10_000 }, async (res) => {
      let text = '';
      try {
        for await (const part of res.setEncoding('utf8')) text += part;
      } catch {} // cut off: what came counts
      resolve({ status: res.statusCode, location: res.headers.location, text, json: parsed(text) });
    });
    req.on('timeout', () => req.destroy(new Error('none within 10 seconds')));
    req.on('error', (err) => resolve({ text: `no answer (${err.code ?? err.message})` }));
    req.end(body);
  });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
