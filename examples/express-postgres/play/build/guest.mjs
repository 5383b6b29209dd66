// nameOf is the name in a body, or nothing when it has none.
export function nameOf(body) {
  const name = body?.name;
  return typeof name === 'string' && name !== '' ? name : undefined;
}
