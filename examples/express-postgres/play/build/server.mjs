// A guest book in postgres.
import express from 'express';
import pg from 'pg';
import { nameOf } from './guest.mjs';

const db = new pg.Pool({ connectionString: process.env.DATABASE_URL });
await db.query('CREATE TABLE IF NOT EXISTS guests (id SERIAL PRIMARY KEY, name TEXT NOT NULL)');

const app = express();
app.use(express.json({ strict: false, type: () => true }));

app.get('/health', async (request, response) => {
  await db.query('SELECT 1');
  response.json({ status: 'ok' });
});

app.post('/guests', async (request, response) => {
  const name = nameOf(request.body);
  if (name === undefined) return response.status(400).json({ error: 'a guest needs a name' });
  const { rows } = await db.query('INSERT INTO guests (name) VALUES ($1) RETURNING id, name', [name]);
  response.status(201).json(rows[0]);
});

app.get('/guests/:id', async (request, response) => {
  const id = /^[1-9][0-9]{0,8}$/.test(request.params.id) ? Number(request.params.id) : 0;
  const { rows } = await db.query('SELECT id, name FROM guests WHERE id = $1', [id]);
  if (rows.length === 0) return response.status(404).json({ error: 'there is no such guest' });
  response.json(rows[0]);
});

// What could not be read as JSON comes here, and what went wrong.
app.use((error, request, response, next) => {
  response.status(error.status ?? 500).json({ error: error.message || 'something went wrong' });
});

app.listen(3000, '0.0.0.0');
