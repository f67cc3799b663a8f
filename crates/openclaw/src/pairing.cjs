// Prints the pairing requests of the Telegram channel, from the state folder that is the first argument.
const fs = require('node:fs');
const path = require('node:path');

const state = process.argv[2];
const LIMIT = 20;
const MAX_FILE = 65536;

// Releases from 2026.7 on: a table of the state database. They do not read the file of older releases any more.
function rows() {
  const file = path.join(state, 'state', 'openclaw.sqlite');
  if (!fs.existsSync(file)) return null;
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(file, { readOnly: true, timeout: 2000 });
  const table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'channel_pairing_requests'";
  if (!database.prepare(table).get()) return null;
  const sql =
    'SELECT substr(request_id, 1, 100) AS id, substr(code, 1, 100) AS code, substr(created_at, 1, 100) AS createdAt, ' +
    'CASE WHEN length(meta_json) <= 2000 THEN meta_json END AS meta FROM channel_pairing_requests ' +
    "WHERE channel_key = 'telegram' AND account_id = 'default' ORDER BY created_at DESC LIMIT ?";
  return database.prepare(sql).all(LIMIT).map((row) => ({ ...row, meta: meta(row.meta) }));
}

function meta(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

// Older releases: a file. What is no plain file, or too large for one, was not written by OpenClaw.
function file() {
  const name = path.join(state, 'credentials', 'telegram-pairing.json');
  const found = fs.statSync(name, { throwIfNoEntry: false });
  if (!found) return [];
  if (!found.isFile() || found.size > MAX_FILE) process.exit(4);
  const requests = JSON.parse(fs.readFileSync(name, 'utf8')).requests;
  return Array.isArray(requests) ? requests.slice(-LIMIT) : [];
}

process.stdout.write(JSON.stringify({ requests: rows() ?? file() }));
