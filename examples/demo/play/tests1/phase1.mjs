// The tests of phase 1, by contract.
export default {
  'P1.C1 GET /health → 200 {"status": "ok"}': async (app) => {
    await app.ask('GET', '/health');
    app.want(200, { status: 'ok' });
  },

  'P1.C2 POST /links {"url": U} with a new http or https address U → 201 {"code": C, "url": U}, C being 6 characters out of a-z and 0-9': async (app) => {
    const https = app.fresh();
    for (const url of [https, `http://example.org/?q=${https.slice('https://'.length)}&n=%C3%BC#part`]) {
      await app.shorten(url);
      app.want(201, (got) => got.url === url && /^[a-z0-9]{6}$/.test(got.code));
    }
  },

  'P1.C3 POST /links {"url": U} with a U that has a code already → 200 {"code": C, "url": U} with the same C': async (app) => {
    const url = app.fresh();
    const code = await app.shorten(url);
    app.want(201);
    await app.shorten(`${url}-other`);
    app.want(201, (got) => got.code !== code);
    for (let again = 1; again <= 2; again++) {
      await app.shorten(url);
      app.want(200, { code, url });
    }
  },

  'P1.C4 POST /links with a body that is no JSON object, or with a url that is no http or https address → 400 {"error": E}': async (app) => {
    const bodies = ['', '{', 'null', '[]', '"https://example.com"', '{}', '{"url": null}', '{"url": 7}', '{"url": ""}',
      '{"url": "example.com"}', '{"url": "ftp://example.com/"}', '{"url": "javascript:alert(1)"}'];
    for (const body of bodies) {
      await app.ask('POST', '/links', body);
      app.wantError(400);
    }
    await app.ask('GET', '/health');
    app.want(200);
  },

  'P1.C5 GET /C with a known code C → 302 with header Location: U': async (app) => {
    const url = app.fresh();
    const code = await app.shorten(url);
    await app.ask('GET', `/${code}`);
    app.want(302);
    if (app.last.location !== url) app.fail();
  },

  'P1.C6 GET /C with an unknown code C → 404 {"error": E}': async (app) => {
    for (const code of ['000000', 'nobody', 'ABCDEF', '%C3%BC', '__proto__']) {
      await app.ask('GET', `/${code}`);
      app.wantError(404);
    }
  },

  'P1.C7 GET /links/C with a known code C → 200 {"code": C, "url": U, "hits": N}, N being the number of times that GET /C was asked for': async (app) => {
    const url = app.fresh();
    const code = await app.shorten(url);
    for (let hits = 0; hits <= 3; hits++) {
      await app.ask('GET', `/links/${code}`);
      app.want(200, { code, url, hits });
      await app.ask('GET', `/${code}`);
      app.want(302);
    }
    await Promise.all([1, 2, 3, 4, 5].map(() => app.ask('GET', `/${code}`)));
    await app.ask('GET', `/links/${code}`);
    app.want(200, { code, url, hits: 9 });
  },

  'P1.C8 GET /links/C with an unknown code C → 404 {"error": E}': async (app) => {
    for (const code of ['000000', 'nobody', '__proto__']) {
      await app.ask('GET', `/links/${code}`);
      app.wantError(404);
    }
  },

  'P1.C9 GET /links/C after a restart of the service → 200 {"code": C, "url": U, "hits": N} as before the restart': async (app) => {
    const url = app.fresh();
    const code = await app.shorten(url);
    await app.ask('GET', `/${code}`);
    await app.ask('GET', `/${code}`);
    await app.ask('GET', `/links/${code}`);
    app.want(200, { code, url, hits: 2 });
    app.restart();
    await app.ask('GET', `/links/${code}`);
    app.want(200, { code, url, hits: 2 });
  },
};
