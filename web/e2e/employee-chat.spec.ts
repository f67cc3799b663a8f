// The chat over the platform, in a browser against the running binary: stream, stop, reload, switch, save, quota, offline.
import { expect, expectAccessible } from './fixtures';
import { composer, replies, say, test, thread, withHistory, withoutRelay, withSaves } from './workplace';

// Each test has an employee of its own. These files run last: both workers share what is left of them.
test.describe.configure({ mode: 'parallel' });

test.beforeEach(async ({ page, watch }) => {
  watch.allow(/status of 404/);
  await withoutRelay(page);
  await withHistory(page);
});

test('loads the list, then today’s sums, then selects; a reply streams in and says what it used', async ({
  page,
  place,
}) => {
  const order: string[] = [];
  page.on('request', (request) => {
    const path = new URL(request.url()).pathname.replace(/^.*\/api\/v1/, '');
    if (['/me/instances', '/me/usage/summary', '/me/chat/history'].includes(path)) order.push(path);
  });
  const saved = await withSaves(page);
  const employee = await place.newEmployee(2);
  await place.open(page, employee);
  await expect(composer(page)).toBeVisible();
  await expect
    .poll(() => order.slice(0, 3))
    .toEqual(['/me/instances', '/me/usage/summary', '/me/chat/history']);
  await expect(page.getByRole('complementary', { name: 'Assistants and conversations' })).toHaveCSS(
    'width',
    '280px',
  );

  await say(page, 'please use markdown');
  const reply = replies(page).last();
  await expect(reply.getByRole('heading', { name: 'Tides' })).toBeVisible();
  await expect(reply.getByRole('table')).toContainText('Lisbon');
  await expect(reply.locator('.hljs-keyword').first()).toHaveText('def');
  await expect(reply.getByRole('link', { name: 'the tables' })).toHaveAttribute('rel', 'noreferrer noopener');
  await expect(reply).toContainText('<script>');
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  await expect(reply).toContainText('52 tokens');
  await expect(reply).toContainText(/\$0\.\d\d/, { timeout: 15_000 });

  expect(saved).toMatchObject([
    { role: 'user', content: 'please use markdown', tokens: 0, instance_id: employee.instances[0] },
    { role: 'assistant', tokens: 12, instance_id: employee.instances[0] },
  ]);
  await expect(page.getByRole('button', { name: /Assistant \d+/ }).first()).toContainText('52 tokens', {
    timeout: 15_000,
  });
});

test('the instance named in the URL is selected', async ({ page, place }) => {
  const employee = await place.newEmployee(2);
  await place.open(page, employee, `/?instance=${employee.instances[1] ?? ''}`);
  const number = employee.instances[1]?.replace('pool-', '') ?? '';
  await expect(page.getByRole('heading', { level: 1, name: `Assistant ${number}` })).toBeVisible();
});

test('Esc stops a reply, what has come stays, and asking again replaces it', async ({ page, place }) => {
  const saved = await withSaves(page);
  const employee = await place.newEmployee();
  await place.open(page, employee);
  await say(page, 'slow, to be stopped');
  await expect(replies(page).last()).toContainText('word3');
  // Once the page's request has ended nothing more can come, and the provider is not asked for more either.
  const ended = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/me/chat'));
  await page.keyboard.press('Escape');
  await ended;
  await expect(replies(page).last()).toContainText('Stopped');
  await expect.poll(() => place.model.left).toContain('slow, to be stopped');
  await expect.poll(() => saved.length).toBe(2);
  const { content = '' } = saved[1] ?? {};
  expect(content).toContain('word3');
  expect(content).not.toContain('word399');
  await expect(replies(page).last().locator('.prose-chat')).toHaveText(content.trim());

  await page.getByRole('button', { name: 'Edit and send again' }).click();
  await expect(composer(page)).toHaveValue('slow, to be stopped');
  await composer(page).fill('quick please');
  await composer(page).press('Enter');
  await expect(replies(page)).toHaveCount(1);
  await expect(replies(page).last()).toContainText('You said: quick please');
  await page.getByRole('button', { name: 'Ask again' }).click();
  await expect(replies(page).last()).toContainText('52 tokens');
  await expect(thread(page).getByRole('article')).toHaveCount(2);
});

test('a reload in the middle loses nothing: the half reply is there, says so, and can be asked again', async ({
  page,
  place,
}) => {
  await withSaves(page);
  await place.open(page, await place.newEmployee());
  await say(page, 'slow please');
  await expect(replies(page).last()).toContainText('word4');
  await composer(page).fill('a draft');
  await page.reload();
  await expect(replies(page).last()).toContainText('word4');
  await expect(replies(page).getByRole('alert')).toContainText(
    'This reply was broken off when the page was left or reloaded.',
  );
  await expect(replies(page).getByRole('alert').getByText('Ask again')).toBeInViewport({ ratio: 1 });
  await expectAccessible(page);
  await expect(composer(page)).toHaveValue('a draft');
  await page.getByRole('button', { name: 'Ask again' }).click();
  await expect(replies(page).last()).toContainText('word6');
  await expect(replies(page)).toHaveCount(1);
});

test('a reload before the first word says so as well, and the question can be asked again', async ({
  page,
  place,
}) => {
  await withSaves(page);
  await place.open(page, await place.newEmployee());
  await say(page, 'silent please');
  await expect(thread(page).getByRole('img', { name: 'Sent' })).toHaveCount(1);
  await page.reload();
  await expect(thread(page).getByText('silent please')).toBeVisible();
  await expect(replies(page).getByRole('alert')).toContainText('The page was closed before a reply came.');
  const asked = place.model.asked.length;
  await replies(page).getByRole('button', { name: 'Ask again' }).click();
  await expect.poll(() => place.model.asked.slice(asked)).toEqual(['silent please']);
  await expect(thread(page).getByRole('article')).toHaveCount(2);
});

test('another instance: the pane is empty, the old stream ends, each has its own draft', async ({
  page,
  place,
}) => {
  await withSaves(page);
  await place.open(page, await place.newEmployee(2));
  await say(page, 'slow, to be left');
  await expect(replies(page).last()).toContainText('word2');
  await composer(page).fill('for the first');
  const buttons = page.getByRole('complementary').getByRole('listitem').getByRole('button');
  await buttons.nth(1).click();
  await expect(thread(page).getByRole('article')).toHaveCount(0);
  await expect(composer(page)).toHaveValue('');
  await expect.poll(() => place.model.left).toContain('slow, to be left');
  await buttons.nth(0).click();
  await expect(composer(page)).toHaveValue('for the first');
});

test('a save that fails is marked and can be repeated; the chat goes on', async ({ page, place, watch }) => {
  watch.allow(/status of 500/);
  let answer: 'ok' | 'fail' = 'fail';
  const saved = await withSaves(page, () => answer);
  await place.open(page, await place.newEmployee());
  await say(page, 'one');
  await expect(replies(page).last()).toContainText('You said: one');
  await expect(page.getByText('Not saved')).toHaveCount(2);
  await expectAccessible(page);
  answer = 'ok';
  await say(page, 'two');
  await expect(replies(page).last()).toContainText('You said: two');
  await expect.poll(() => saved.length).toBe(4);
  await expect(page.getByText('Not saved')).toHaveCount(2);
  await page.getByRole('button', { name: 'Save again' }).first().click();
  await expect.poll(() => saved.length).toBe(5);
  await expect(page.getByText('Not saved')).toHaveCount(1);
  expect(saved.at(-1)).toMatchObject({ role: 'user', content: 'one' });
});

test('a used-up quota names the limit and when it resets', async ({ page, place, watch }) => {
  watch.allow(/status of 429/);
  await withSaves(page);
  const employee = await place.newEmployee();
  await place.server.patchEmployee(employee.id, { quota_daily: 50 });
  await place.open(page, employee);
  await expect(page.getByRole('meter', { name: 'Daily tokens' })).toHaveAttribute(
    'aria-valuetext',
    '50 of 50 tokens left',
  );
  await say(page, 'first');
  await expect(replies(page).last()).toContainText('52 tokens');
  await expect(page.getByText('Used up for today')).toBeVisible({ timeout: 15_000 });
  await say(page, 'second');
  await expect(page.getByRole('alert')).toContainText(
    /Your daily limit of 50 tokens is used up\. It resets in \d+/,
  );
  await expect(page.getByRole('button', { name: 'Send again', exact: true })).toBeVisible();
  await expectAccessible(page);
});

test('offline and back: what was sent waits, the page counts down, then it goes out once', async ({
  page,
  context,
  place,
  watch,
}) => {
  watch.allow(/ERR_INTERNET_DISCONNECTED/);
  await withSaves(page);
  await place.open(page, await place.newEmployee());
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await context.setOffline(true);
  await expect(page.getByText(/^Reconnecting in \d+ s$/)).toBeVisible();
  await expect(page.getByText('This device is offline.')).toBeVisible();
  await say(page, 'are you there');
  await expect(page.getByText('Waiting to send')).toBeVisible();
  await expectAccessible(page);
  await context.setOffline(false);
  await expect(replies(page).last()).toContainText('You said: are you there');
  expect(place.model.asked.filter((prompt) => prompt === 'are you there')).toHaveLength(1);
});

test('a break before the answer says so, and nothing is asked again but by the person', async ({
  page,
  place,
  watch,
}) => {
  watch.allow(/ERR_CONNECTION_RESET/);
  await withSaves(page);
  await place.open(page, await place.newEmployee());
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  let asked = 0;
  await page.route('**/me/chat', (route) => {
    asked += 1;
    return asked === 1 ? route.abort('connectionreset') : route.fallback();
  });
  await say(page, 'did you hear');
  await expect(thread(page).getByRole('alert')).toContainText('The message may have arrived all the same.');
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await expectAccessible(page);
  expect(asked).toBe(1);
  await page.getByRole('button', { name: 'Send again', exact: true }).click();
  await expect(replies(page).last()).toContainText('You said: did you hear');
  await expect(thread(page).getByRole('article')).toHaveCount(2);
  expect(asked).toBe(2);
});

test('the keyboard alone: write, break a line, recall, new chat, commands, help', async ({ page, place }) => {
  await withSaves(page);
  await place.open(page, await place.newEmployee());
  const { keyboard } = page;
  await composer(page).focus();
  await keyboard.type('first line');
  await keyboard.press('Shift+Enter');
  await keyboard.type('second line');
  await keyboard.press('Enter');
  await expect(replies(page).last()).toContainText('second line');
  await keyboard.press('ArrowUp');
  await expect(composer(page)).toHaveValue('first line\nsecond line');
  await composer(page).fill('');

  await keyboard.press('Control+Shift+KeyO');
  await expect(thread(page).getByRole('article')).toHaveCount(0);
  await expect(
    page.getByRole('complementary').getByRole('button', { name: 'first line', exact: true }),
  ).toBeVisible();

  await keyboard.press('Control+k');
  await expect(page.getByRole('combobox')).toBeFocused();
  await keyboard.type('usage');
  await keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Usage', level: 1 })).toBeVisible();
  await keyboard.press('Control+/');
  await expect(page.getByRole('dialog', { name: 'Keyboard shortcuts' })).toBeVisible();
  await expectAccessible(page);
});

test('an input method’s Enter does not send', async ({ page, place }) => {
  await withSaves(page);
  await place.open(page, await place.newEmployee());
  await composer(page).fill('ni hao');
  const asked = place.model.asked.length;
  await composer(page).dispatchEvent('keydown', {
    key: 'Enter',
    isComposing: true,
    keyCode: 229,
    bubbles: true,
  });
  // What comes after it shows that it was not sent: it is still there to be written on, and goes out whole and once.
  await composer(page).press('End');
  await composer(page).pressSequentially(' ma');
  await composer(page).press('Enter');
  await expect(replies(page).last()).toContainText('You said: ni hao ma');
  await expect(thread(page).getByRole('article')).toHaveCount(2);
  expect(place.model.asked.slice(asked)).toEqual(['ni hao ma']);
});

test('scrolling up is left in peace while a reply grows, and the way back is one press', async ({
  page,
  place,
}) => {
  await withSaves(page);
  await page.setViewportSize({ width: 1280, height: 520 });
  await place.open(page, await place.newEmployee());
  for (const text of ['markdown one', 'markdown two']) {
    await say(page, text);
    await expect(replies(page).last()).toContainText('52 tokens');
  }
  await say(page, 'slow please');
  await expect(replies(page).last()).toContainText('word2');
  await thread(page).evaluate((element) => (element.scrollTop = 0));
  await expect(replies(page).last()).toContainText('word8');
  expect(await thread(page).evaluate((element) => element.scrollTop)).toBeLessThan(20);
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await expect
    .poll(() =>
      thread(page).evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight),
    )
    .toBeLessThan(40);
});

test('a session that ends in the middle leads back to the same draft', async ({ page, place, watch }) => {
  watch.allow(/status of 401/);
  await withSaves(page);
  const employee = await place.newEmployee();
  await place.open(page, employee);
  const token = await page.evaluate(() => localStorage.getItem('tidepool.employee.token') ?? '');
  await composer(page).fill('half a thought');
  await place.server.endToken(place.server.employeeUrl, token);
  await page.reload();
  await expect(page.getByText('Your session has ended.')).toBeVisible();
  await page.getByLabel('E-mail').fill(employee.email);
  await page.getByLabel('Password', { exact: true }).fill(employee.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(composer(page)).toHaveValue('half a thought');
});
