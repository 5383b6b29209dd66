// The tests of phase 2, by contract.
export default {
  'P2.C1 POST /links {"url": U, "code": K} with a new address U and a K that is not taken → 201 {"code": K, "url": U}': async (app) => {
    for (const code of [`own-${process.pid}`, `own-${process.pid}-20-characters`.slice(0, 20)]) {
      const url = `${app.fresh()}/${code}`;
      await app.shorten(url, { code });
      app.want(201, { code, url });
      await app.ask('GET', `/${code}`);
      app.want(302);
      await app.ask('DELETE', `/links/${code}`);
      app.want(204);
    }
  },

  'P2.C2 POST /links {"url": U, "code": K} with a new address U and a K that is taken → 409 {"error": E}': async (app) => {
    const url = app.fresh();
    const code = await app.shorten(url);
    for (const taken of [code, 'links', 'health']) {
      await app.shorten(`${url}/other`, { code: taken });
      app.wantError(409);
    }
    await app.ask('GET', `/links/${code}`);
    app.want(200, (got) => got.url === url);
  },

  'P2.C3 GET /links → 200 {"links": [{"code", "url", "hits"}, …]} with every link, the newest first': async (app) => {
    const url = app.fresh();
    const first = await app.shorten(`${url}/1`);
    const second = await app.shorten(`${url}/2`);
    await app.ask('GET', `/${first}`);
    const got = await app.ask('GET', '/links');
    app.want(200, () => Array.isArray(got.links));
    app.last.json = got.links.slice(0, 2);
    app.want(200, [{ code: second, url: `${url}/2`, hits: 0 }, { code: first, url: `${url}/1`, hits: 1 }]);
  },

  'P2.C4 DELETE /links/C with a known code C → 204': async (app) => {
    const code = await app.shorten(app.fresh());
    await app.ask('DELETE', `/links/${code}`);
    app.want(204);
    if (app.last.text !== '') app.fail();
  },

  'P2.C5 GET /C after DELETE /links/C → 404 {"error": E}': async (app) => {
    const code = await app.shorten(app.fresh());
    await app.ask('DELETE', `/links/${code}`);
    await app.ask('GET', `/${code}`);
    app.wantError(404);
    app.restart();
    await app.ask('GET', `/${code}`);
    app.wantError(404);
  },
};
