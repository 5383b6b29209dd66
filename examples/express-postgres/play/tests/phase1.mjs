// The tests of phase 1, a function a contract. Prints TAP.
import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from 'node:assert';
import { execFileSync } from 'node:child_process';

async function ask(method, path, status, body) {
  const headers = { 'Content-Type': 'application/json', Connection: 'close' }; // none outlives a restart
  const answer = await fetch(process.env.ABL_APP_URL + path, { method, body, headers });
  strictEqual(answer.status, status, `${method} ${path} ${body ?? ''}: status ${answer.status}`);
  return answer.json();
}

async function refused(method, path, status, body) {
  const { error } = await ask(method, path, status, body);
  match(error, /\w/, `${method} ${path}: error ${error}`);
}

async function guest(name) {
  const { id, ...rest } = await ask('POST', '/guests', 201, JSON.stringify({ name }));
  ok(Number.isInteger(id), `id ${id}`);
  deepStrictEqual(rest, { name });
  return id;
}

const tests = {
  'P1.C1': async () => deepStrictEqual(await ask('GET', '/health', 200), { status: 'ok' }),
  'P1.C2': async () => notStrictEqual(await guest('Ada'), await guest("Robert'); DROP TABLE guests;--")),
  'P1.C3': async () => {
    for (const body of ['', '{', 'null', '[]', '{}', '{"name": ""}', '{"name": 7}']) await refused('POST', '/guests', 400, body);
  },
  'P1.C4': async () => {
    await refused('GET', '/guests/999999', 404);
    await refused('GET', '/guests/nobody', 404);
  },
  'P1.C5': async () => {
    const id = await guest('Grace');
    execFileSync('abl-cmd', ['restart'], { stdio: 'ignore' });
    deepStrictEqual(await ask('GET', `/guests/${id}`, 200), { id, name: 'Grace' });
  },
};

console.log(`1..${Object.keys(tests).length}`);
let n = 0;
for (const [contract, test] of Object.entries(tests)) {
  n++;
  try {
    await test();
    console.log(`ok ${n} - ${contract}`);
  } catch (seen) {
    process.exitCode = 1;
    console.log(`not ok ${n} - ${contract}`);
    console.log(`# ${String(seen.message).replaceAll('\n', ' ')}`);
  }
}
