// The tests of phase 1, a function a contract. Prints TAP.
import { deepStrictEqual, match, notStrictEqual, strictEqual } from 'node:assert';
import { randomUUID } from 'node:crypto';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function ask(method, path, status) {
  const answer = await fetch(process.env.ABL_APP_URL + path, { method });
  strictEqual(answer.status, status, `${method} ${path}: status ${answer.status}`);
  return answer.json();
}

async function refused(path, status) {
  const { error } = await ask('GET', path, status);
  match(error, /\w/, `GET ${path}: error ${error}`);
}

const tests = {
  'P1.C1': async () => deepStrictEqual(await ask('GET', '/health', 200), { status: 'ok' }),
  'P1.C2': async () => {
    const { ticket } = await ask('POST', '/tickets', 201);
    match(ticket, uuid);
    notStrictEqual((await ask('POST', '/tickets', 201)).ticket, ticket);
  },
  'P1.C3': async () => {
    const { ticket } = await ask('POST', '/tickets', 201);
    deepStrictEqual(await ask('GET', `/tickets/${ticket}`, 200), { ticket });
  },
  'P1.C4': async () => refused(`/tickets/${randomUUID()}`, 404),
  'P1.C5': async () => refused('/tickets/none-at-all', 400),
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
