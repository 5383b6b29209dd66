// Checks what comes in, once, at the edge.
const maxBody = 64 * 1024;

export class BadRequest extends Error {}

// readObject reads a request's body as a JSON object.
export async function readObject(req) {
  const chunks = [];
  let size = 0;
  for await (const chunk of req) {
    size += chunk.length;
    if (size > maxBody) throw new BadRequest('the body is too long');
    chunks.push(chunk);
  }
  let value;
  try {
    value = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new BadRequest('the body is not JSON');
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new BadRequest('the body is not a JSON object');
  }
  return value;
}

// webAddress returns the text if it is an http or https address.
export function webAddress(text) {
  if (typeof text !== 'string' || !URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new BadRequest('url is not an http or https address');
  }
  return text;
}

// chosenCode returns the text if it can be a link's code.
export function chosenCode(text) {
  if (typeof text !== 'string' || !/^[a-z0-9-]{3,20}$/.test(text)) {
    throw new BadRequest('code is not 3 to 20 characters out of a-z, 0-9 and the hyphen');
  }
  return text;
}
