// Who this browser is to a gateway that it reaches straight: a key pair of its own, made once and never readable, with which
// it signs the gateway's challenge.

const CLIENT = { id: 'openclaw-control-ui', mode: 'webchat', platform: 'web', version: '1.0.0' };
const ROLE = 'operator';
const SCOPES = ['operator.read', 'operator.write'];
const STORE = 'device';

interface Challenge {
  nonce: string;
  ts: number;
}

/** The parameters of the gateway's `connect`. Throws where the page is not secure: there are no keys to be had there. */
export async function deviceProof(challenge: Challenge, token: string): Promise<object> {
  const { privateKey, publicKey } = await keys();
  const raw = await rawKey(publicKey);
  const id = await idOf(raw);
  const signed = [
    'v3',
    id,
    CLIENT.id,
    CLIENT.mode,
    ROLE,
    SCOPES.join(','),
    challenge.ts,
    token,
    challenge.nonce,
    CLIENT.platform,
    '',
  ].join('|');
  const signature = await crypto.subtle.sign('Ed25519', privateKey, new TextEncoder().encode(signed));
  return {
    minProtocol: 4,
    maxProtocol: 4,
    client: CLIENT,
    role: ROLE,
    scopes: SCOPES,
    caps: ['tool-events'],
    auth: { token },
    device: {
      id,
      publicKey: base64url(raw),
      signature: base64url(new Uint8Array(signature)),
      signedAt: challenge.ts,
      nonce: challenge.nonce,
    },
  };
}

/** The name by which gateways know this browser. */
export async function deviceId(): Promise<string> {
  return idOf(await rawKey((await keys()).publicKey));
}

async function rawKey(key: CryptoKey): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.exportKey('raw', key));
}

async function idOf(raw: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', raw)));
}

async function keys(): Promise<CryptoKeyPair> {
  const database = await open();
  const found = await ask<CryptoKeyPair | undefined>(database, 'readonly', (store) => store.get('keys'));
  if (found !== undefined) return found;
  const made = await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify']);
  await ask(database, 'readwrite', (store) => store.put(made, 'keys'));
  return made;
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('tidepool', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(new Error('no storage for the device key'));
  });
}

function ask<Result>(
  database: IDBDatabase,
  mode: IDBTransactionMode,
  question: (store: IDBObjectStore) => IDBRequest,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const request = question(database.transaction(STORE, mode).objectStore(STORE));
    request.onsuccess = () => resolve(request.result as Result);
    request.onerror = () => reject(new Error('the device key cannot be stored'));
  });
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}
