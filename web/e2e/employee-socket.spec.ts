// The live connection to an assistant, in a browser: the platform's relay is played by the test, frame by frame.
import { expect, expectAccessible } from './fixtures';
import { SESSION, text, withRelay, type Relay } from './relay';
import { composer, replies, say, test, thread, withHistory, withSaves } from './workplace';

// Each test has an employee of its own. These files run last: both workers share what is left of them.
test.describe.configure({ mode: 'parallel' });

const runOf = (relay: Relay) =>
  String(relay.sent.findLast(({ method }) => method === 'chat.send')?.params.idempotencyKey);

test.beforeEach(async ({ page }) => {
  await withHistory(page);
});

test('the assistant answers with phases, tools and words; both sides are saved', async ({ page, place }) => {
  const saved = await withSaves(page);
  const relay = await withRelay(page);
  await place.open(page, await place.newEmployee());
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await say(page, 'hello');
  await expect.poll(() => relay.sent.some(({ method }) => method === 'chat.send')).toBe(true);
  const runId = runOf(relay);
  relay.chat({ runId, state: 'status', phase: 'starting_model' });
  await expect(page.getByText('Waking the model')).toBeVisible();
  const tool = (data: object) => {
    const payload = { runId, sessionKey: SESSION, stream: 'tool', data };
    for (const socket of relay.open.values())
      socket.send(JSON.stringify({ type: 'event', event: 'agent', payload }));
  };
  tool({ phase: 'start', name: 'read_file', toolCallId: 't', args: { path: 'a.md' } });
  await expect(page.getByText('Uses read_file…')).toBeVisible();
  tool({ phase: 'result', toolCallId: 't', result: 'contents' });
  relay.chat({ runId, state: 'delta', message: text('Hel') });
  await expect(replies(page).last()).toContainText('Hel');
  relay.chat({ runId, state: 'final', message: text('Hello there.') });
  await expect(replies(page).last()).toContainText('Hello there.');
  await page.getByText('Used read_file').click();
  await expect(page.getByText('contents')).toBeVisible();
  await expect
    .poll(() => saved.map(({ role, content }) => `${role} ${content}`))
    .toEqual(['user hello', 'assistant Hello there.']);
  await expectAccessible(page);
});

test('a reload in the middle picks the running reply up; a dropped socket does, too', async ({
  page,
  place,
}) => {
  await withSaves(page);
  const relay = await withRelay(page);
  await place.open(page, await place.newEmployee());
  await say(page, 'count');
  await expect.poll(() => relay.sent.some(({ method }) => method === 'chat.send')).toBe(true);
  const runId = runOf(relay);
  relay.chat({ runId, state: 'delta', message: text('one') });
  await expect(replies(page).last()).toContainText('one');
  relay.history = {
    messages: [{ role: 'user', content: 'count', idempotencyKey: `${runId}:user`, timestamp: Date.now() }],
    inFlightRun: { runId, text: 'one two', startedAt: Date.now() },
  };
  await page.reload();
  await expect(replies(page).last()).toContainText('one two');
  relay.chat({ runId, state: 'delta', message: text('one two three') });
  await expect(replies(page).last()).toContainText('one two three');

  // It is said for a second, until the next attempt begins: the page itself looks for it, at every change.
  const said = page.evaluate(
    (words) =>
      new Promise<void>((resolve) => {
        const observer = new MutationObserver(() => look());
        const look = () => {
          if (!document.body.textContent.includes(words)) return;
          observer.disconnect();
          resolve();
        };
        observer.observe(document.body, { childList: true, subtree: true, characterData: true });
        look();
      }),
    'The assistant is restarting.',
  );
  for (const socket of relay.open.values()) await socket.close({ code: 1012, reason: 'service restart' });
  relay.open.clear();
  await said;
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  relay.chat({ runId, state: 'final', message: text('one two three four') });
  await expect(replies(page).last()).toContainText('one two three four');
  expect(relay.sent.filter(({ method }) => method === 'chat.send')).toHaveLength(1);
});

test('a lost network is said at once, and what was written then goes out once', async ({
  page,
  context,
  place,
  watch,
}) => {
  watch.allow(/ERR_INTERNET_DISCONNECTED/);
  await withSaves(page);
  const relay = await withRelay(page);
  // What a test answers itself is answered without a network too.
  let offline = false;
  await page.route('**/ws-ticket', (route) =>
    offline ? route.abort('internetdisconnected') : route.fallback(),
  );
  await place.open(page, await place.newEmployee());
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  offline = true;
  await context.setOffline(true);
  await expect(page.getByText('This device is offline.')).toBeVisible();
  await say(page, 'are you there');
  await expect(page.getByText('Waiting to send')).toBeVisible();
  expect(relay.sent.filter(({ method }) => method === 'chat.send')).toHaveLength(0);
  offline = false;
  await context.setOffline(false);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await expect(thread(page).getByRole('img', { name: 'Sent' })).toHaveCount(1);
  expect(relay.sent.filter(({ method }) => method === 'chat.send')).toHaveLength(1);
});

test('another instance closes the old socket and clears the pane', async ({ page, place }) => {
  await withSaves(page);
  const relay = await withRelay(page);
  const employee = await place.newEmployee(2);
  const [first = '', second = ''] = employee.instances;
  await place.open(page, employee);
  await say(page, 'hello');
  await expect.poll(() => relay.sent.some(({ method }) => method === 'chat.send')).toBe(true);
  relay.chat({ runId: runOf(relay), state: 'delta', message: text('still going') });
  await expect(replies(page).last()).toContainText('still going');
  await page.getByRole('complementary').getByRole('listitem').getByRole('button').nth(1).click();
  await expect.poll(() => relay.closed).toEqual([first]);
  await expect.poll(() => [...relay.open.keys()]).toEqual([second]);
  await expect(thread(page).getByRole('article')).toHaveCount(0);
  await expect(composer(page)).toHaveValue('');
});

test('files go along: named with type and size, refused when they are too large', async ({ page, place }) => {
  await withSaves(page);
  const relay = await withRelay(page);
  await place.open(page, await place.newEmployee());
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  const input = page.locator('input[type=file]');
  await input.setInputFiles([
    { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('low tide') },
    { name: 'photo.png', mimeType: 'image/png', buffer: Buffer.alloc(1001) },
  ]);
  const chosen = page.getByRole('list', { name: 'Attached files' });
  await expect(chosen).toContainText('note.txt');
  await expect(chosen).toContainText('text/plain · 8 bytes');
  await expect(page.getByRole('alert')).toContainText('photo.png is larger than 1 kB');
  await expectAccessible(page);
  await say(page, 'read this');
  await expect.poll(() => relay.sent.some(({ method }) => method === 'chat.send')).toBe(true);
  const params = relay.sent.findLast(({ method }) => method === 'chat.send')?.params;
  expect(params?.attachments).toEqual([
    { type: 'file', mimeType: 'text/plain', fileName: 'note.txt', content: btoa('low tide') },
  ]);
  await expect(thread(page).getByRole('list', { name: 'Attached files' })).toContainText('note.txt');
  await expect(page.getByRole('button', { name: 'Remove note.txt' })).toHaveCount(0);
});

test('an assistant that was taken away is read only, and says so', async ({ page, place, watch }) => {
  watch.allow(/status of 404/);
  await page.route('**/ws-ticket', (route) =>
    route.fulfill({ status: 404, json: { code: '4040', data: null, msg: 'not found' } }),
  );
  await place.open(page, await place.newEmployee());
  await expect(page.getByText('This assistant is not yours any more.')).toBeVisible();
  await expect(page.getByText('Read only')).toBeVisible();
  await expectAccessible(page);
});

const BROKEN = [
  {
    name: 'no upgrade',
    end: null,
    says: 'does not pass on WebSocket connections',
    remedy: 'forward the Upgrade and Connection headers',
  },
  {
    name: 'origin refused',
    end: { code: 1008, reason: 'origin not allowed' },
    says: 'refuses connections from this page’s address',
    remedy: 'TIDEPOOL_PUBLIC_URL',
  },
  {
    name: 'instance down',
    end: { code: 1011, reason: 'the connection to the instance was lost' },
    says: 'The assistant itself does not answer',
    remedy: 'restarts it by itself',
  },
];

for (const { name, end, says, remedy } of BROKEN) {
  test(`says which hop is broken: ${name}; meanwhile the model answers`, async ({ page, place, watch }) => {
    watch.allow(/status of|WebSocket connection/);
    await withSaves(page);
    const ticket = { code: '0000', data: { ticket: 't', expires_at: '2099-01-01T00:00:00Z' }, msg: 'ok' };
    await page.route('**/ws-ticket', (route) => route.fulfill({ json: ticket }));
    // Without an end the socket meets the real server, which does not open it for this ticket; the others open first, as
    // the server does to be able to say why.
    await page.routeWebSocket(/\/ws\?ticket=/, (socket) => {
      if (end === null) socket.connectToServer();
      else setTimeout(() => void socket.close(end), 50);
    });
    await place.open(page, await place.newEmployee());
    await expect(page.getByText(says)).toBeVisible({ timeout: 15_000 });
    await expect(page.getByText(remedy)).toBeVisible();
    await say(page, 'hello');
    await expect(replies(page).last()).toContainText('You said: hello');
    await expectAccessible(page);
  });
}
