// A real OpenID provider for the sign-in tests: npm's oidc-provider with a small login form. Settings by environment:
//   PORT         where to listen on 127.0.0.1; 0 (the default) takes a free port. "idp ready ISSUER" is printed when it listens
//   IDP_MODULES  the node_modules folder that holds oidc-provider (testbed/install.sh idp puts it into the cache folder)
//   USERS        {email: {password, name, groups?, email_verified?, sub?}}; the default is below
//   CLIENTS      [client metadata]; the default is below
//   REDIRECTS    redirect URIs of the default clients, separated by spaces. With none of its own a client takes any loopback
//                port, since a test's server listens on a port that nobody knows beforehand
//   CODE_TTL     life of an authorization code in seconds (60); CODE_TTLS {client_id: seconds} for single clients
//   AT_TTL       life of an access token in seconds (600)
import http from 'node:http';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

const env = process.env;
const modules = env.IDP_MODULES ?? path.join(process.cwd(), 'node_modules');
const { default: Provider } = await import(pathToFileURL(path.join(modules, 'oidc-provider/lib/index.js')).href);

const fromEnv = (name, fallback) => (env[name] ? JSON.parse(env[name]) : fallback);

const users = fromEnv('USERS', {
  'alice@example.test': { password: 'wonder', name: 'Alice', groups: ['admins'] },
  'bob@example.test': { password: 'builder', name: 'Bob', groups: ['viewers'] },
  'carol@example.test': { password: 'unverified1', name: 'Carol', email_verified: false },
  'dave@elsewhere.test': { password: 'elsewhere1', name: 'Dave' },
});

// For a native client the port of a loopback redirect URI does not count (RFC 8252, 7.3).
const callbacks = env.REDIRECTS?.split(/\s+/).filter(Boolean) ?? ['http://127.0.0.1/api/v1/auth/sso/callback'];
const client = (id) => ({
  client_id: id,
  client_secret: `${id}-secret-0123456789abcdef`,
  application_type: env.REDIRECTS ? 'web' : 'native',
  redirect_uris: callbacks,
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
});
const clients = fromEnv('CLIENTS', ['employee', 'admin', 'employee-expiring'].map(client));
const codeTtl = Number(env.CODE_TTL ?? 60);
const codeTtls = fromEnv('CODE_TTLS', { 'employee-expiring': 1 });

function account(id) {
  const user = users[id];
  if (!user) return undefined;
  const { name, groups = [], email_verified = true, sub = id } = user;
  return { accountId: id, claims: () => ({ sub, email: id, email_verified, name, groups }) };
}

function provider(issuer) {
  return new Provider(issuer, {
    clients,
    cookies: { keys: ['test-only-key'] },
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', 'email', 'profile', 'groups'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    conformIdTokenClaims: false, // the scopes' claims are in the id_token too, as with most providers
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
      backchannelLogout: { enabled: true },
    },
    interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_ctx, id) => account(id),
    // The page that comes with it loads a font from elsewhere.
    renderError: (ctx, error) => {
      ctx.type = 'text/plain';
      ctx.body = `${error.error}: ${error.error_description ?? ''}`;
    },
    ttl: {
      AuthorizationCode: (_ctx, _code, client) => codeTtls[client.clientId] ?? codeTtl,
      AccessToken: Number(env.AT_TTL ?? 600),
      IdToken: 600,
      RefreshToken: 86400,
      Session: 86400,
      Interaction: 600,
      Grant: 86400,
    },
  });
}

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text) => String(text ?? '').replace(/[&<>"]/g, (c) => ENTITIES[c]);

const loginPage = (uid, clientId, error, login) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in</title></head><body>
<main><h1>Sign in to ${escaped(clientId)}</h1>${error ? `<p role="alert">${escaped(error)}</p>` : ''}
<form method="post" action="/interaction/${uid}">
<p><label>Email <input name="login" type="email" autocomplete="username" value="${escaped(login)}" required></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password" required></label></p>
<button>Sign in</button></form></main></body></html>`;

function html(res, status, body) {
  res.writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' });
  res.end(body);
}

async function interact(op, req, res) {
  const { prompt, grantId, session, params, uid } = await op.interactionDetails(req, res);
  if (prompt.name === 'consent') {
    // Our own clients: consent is given without a page.
    const grant = grantId ? await op.Grant.find(grantId) : new op.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    return op.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
  }
  if (req.method === 'GET') return html(res, 200, loginPage(uid, params.client_id, null, params.login_hint));
  let body = '';
  for await (const chunk of req) body += chunk;
  const form = new URLSearchParams(body);
  const login = form.get('login');
  if (!users[login] || users[login].password !== form.get('password')) {
    return html(res, 401, loginPage(uid, params.client_id, 'Wrong email or password.', login));
  }
  return op.interactionFinished(req, res, { login: { accountId: login } }, { mergeWithLastSubmission: false });
}

let op;
let answer;
const server = http.createServer((req, res) => {
  if (!/^\/interaction\/[\w-]+$/.test(req.url)) return answer(req, res);
  interact(op, req, res).catch((error) => {
    res.writeHead(400, { 'content-type': 'text/plain' });
    res.end(`${error.name}: ${error.message}`);
  });
});
// The issuer carries the port, so the provider is made once the port is known.
server.listen(Number(env.PORT ?? 0), '127.0.0.1', () => {
  const issuer = env.ISSUER ?? `http://127.0.0.1:${server.address().port}`;
  op = provider(issuer);
  answer = op.callback();
  console.log(`idp ready ${issuer}`);
});
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
