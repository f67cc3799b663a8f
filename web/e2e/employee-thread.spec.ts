// A long conversation in a browser: only what is near the reader is in the page, and nobody notices.
import type { Page } from '@playwright/test';
import { expect, expectAccessible } from './fixtures';
import { text, withRelay, type Relay } from './relay';
import {
  composer,
  replies,
  say,
  test,
  thread,
  withHistory,
  withoutRelay,
  withSaves,
  type Workplace,
} from './workplace';

// Each test has an employee of its own. These files run last: both workers share what is left of them.
test.describe.configure({ mode: 'parallel' });

/** All of them come at once. */
const MESSAGES = 190;

/** Messages of very different heights. */
function longHistory(size = MESSAGES) {
  return {
    messages: Array.from({ length: size }, (_, index) => ({
      ...(index % 2 === 0
        ? { role: 'user', content: `Question ${index}` }
        : text(`Answer **${index}**\n\n${'Water rises and falls.\n\n'.repeat(index % 14)}`)),
      timestamp: 1_794_000_000_000 + index * 1000,
    })),
  };
}

async function openLong(page: Page, place: Workplace, size = MESSAGES): Promise<Relay> {
  await withHistory(page);
  await withSaves(page);
  const relay = await withRelay(page);
  relay.history = longHistory(size);
  await place.open(page, await place.newEmployee());
  await expect(thread(page).getByText(`Answer ${size - 1}`)).toBeVisible();
  // The end is looked for until every row's height is known.
  await expect.poll(() => toEnd(page)).toBeLessThan(5);
  await settled(page);
  return relay;
}

const articles = (page: Page) => thread(page).getByRole('article');

const toEnd = (page: Page) =>
  thread(page).evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight);

/** The first message whose top is in view, and how far below the pane's top that is. */
const firstInView = (page: Page) =>
  thread(page).evaluate((element) => {
    const pane = element.getBoundingClientRect();
    const rows = [...element.querySelectorAll<HTMLElement>('[data-message]')];
    const row = rows.find((one) => one.getBoundingClientRect().top >= pane.top);
    return {
      message: row?.dataset.message ?? '',
      top: Math.round((row?.getBoundingClientRect().top ?? 0) - pane.top),
    };
  });

const topOf = (page: Page, message: string) =>
  thread(page).evaluate((element, id) => {
    const row = element.querySelector(`[data-message="${id}"]`);
    return row === null
      ? null
      : Math.round(row.getBoundingClientRect().top - element.getBoundingClientRect().top);
  }, message);

/** The browser moves over several frames, however long each takes. */
async function settled(page: Page) {
  await thread(page).evaluate(async (element) => {
    for (let [still, before] = [0, '']; still < 10;) {
      await new Promise(requestAnimationFrame);
      const now = `${element.scrollTop} ${element.scrollHeight}`;
      still = now === before ? still + 1 : 0;
      before = now;
    }
  });
}

/** Scrolls back by the wheel: what was first in view moves by as much and stays there. */
async function wheelBack(page: Page, pixels: number) {
  const before = await firstInView(page);
  const off = async () => Math.abs(((await topOf(page, before.message)) ?? 0) - before.top - pixels);
  await page.mouse.wheel(0, -pixels);
  await expect.poll(off).toBeLessThan(3);
  await settled(page);
  expect(await off()).toBeLessThan(3);
}

test('few of many messages are in the page, and each says which one it is', async ({ page, place }) => {
  await openLong(page, place);
  expect(await articles(page).count()).toBeLessThan(40);
  await expect(articles(page).last()).toHaveAttribute('aria-setsize', String(MESSAGES));
  await expect(articles(page).last()).toHaveAttribute('aria-posinset', String(MESSAGES));
  await expect.poll(() => toEnd(page)).toBeLessThan(5);
  await expectAccessible(page);

  await thread(page).press('Home');
  await expect(thread(page).getByText('Question 0', { exact: true })).toBeVisible();
  await expect(articles(page).first()).toHaveAttribute('aria-posinset', '1');
  expect(await articles(page).count()).toBeLessThan(40);
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await expect(thread(page).getByText(`Answer ${MESSAGES - 1}`)).toBeInViewport();
  await expect.poll(() => toEnd(page)).toBeLessThan(5);
  await expect(page.getByRole('button', { name: 'Jump to latest' })).toHaveCount(0);
});

test('scrolling back never jumps, although heights are only known when they are drawn', async ({
  page,
  place,
}) => {
  test.slow();
  await openLong(page, place);
  const box = await thread(page).boundingBox();
  await page.mouse.move((box?.x ?? 0) + 200, (box?.y ?? 0) + 200);
  for (let step = 0; step < 25; step += 1) await wheelBack(page, 150);
});

test('one step back while a reply grows is left in peace, and the end is followed again when one comes back', async ({
  page,
  place,
}) => {
  const relay = await openLong(page, place);
  await say(page, 'go on');
  await expect.poll(() => relay.sent.some(({ method }) => method === 'chat.send')).toBe(true);
  const runId = String(relay.sent.findLast(({ method }) => method === 'chat.send')?.params.idempotencyKey);
  const grow = (lines: number) =>
    relay.chat({ runId, state: 'delta', message: text('A line of the reply.\n\n'.repeat(lines)) });
  grow(30);
  await expect.poll(() => toEnd(page)).toBeLessThan(5);
  await expect(replies(page).last()).toContainText('A line of the reply.');

  const box = await thread(page).boundingBox();
  await page.mouse.move((box?.x ?? 0) + 200, (box?.y ?? 0) + 200);
  await page.mouse.wheel(0, -40);
  await expect.poll(() => toEnd(page)).toBeGreaterThan(30);
  await settled(page);
  const { message, top } = await thread(page).evaluate((element) => {
    const row = [...element.querySelectorAll<HTMLElement>('[data-message]')].at(-1);
    return {
      message: row?.dataset.message ?? '',
      top: Math.round((row?.getBoundingClientRect().top ?? 0) - element.getBoundingClientRect().top),
    };
  });
  for (const lines of [32, 36, 40]) {
    grow(lines);
    await expect(replies(page).last().getByText('A line of the reply.')).toHaveCount(lines);
    await settled(page);
    expect(await topOf(page, message)).toBe(top);
  }

  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await expect.poll(() => toEnd(page)).toBeLessThan(5);
  grow(60);
  await expect.poll(() => toEnd(page)).toBeLessThan(5);
});

test('what is focused or unfolded is not lost when it is scrolled away', async ({ page, place }) => {
  await withHistory(page);
  await withSaves(page);
  const relay = await withRelay(page);
  const history = longHistory();
  history.messages[MESSAGES - 1] = {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'The moon pulls.' },
      { type: 'text', text: `Answer ${MESSAGES - 1}` },
    ],
    timestamp: 1_795_000_000_000,
  } as never;
  relay.history = history;
  await place.open(page, await place.newEmployee());
  await page.getByText('Reasoning').click();
  await expect(page.getByText('The moon pulls.')).toBeVisible();
  const copy = replies(page).last().getByRole('button', { name: 'Copy the reply' });
  await copy.focus();
  await thread(page).evaluate((element) => (element.scrollTop = 0));
  await expect(thread(page).getByText('Question 0', { exact: true })).toBeVisible();
  await expect(copy).toBeFocused();

  await composer(page).focus();
  await expect(page.getByText('The moon pulls.')).toHaveCount(0);
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await expect(page.getByText('The moon pulls.')).toBeVisible();
});

test('finding looks through the whole conversation', async ({ page, place }) => {
  await openLong(page, place);
  await composer(page).focus();
  await page.keyboard.press('Control+f');
  const find = page.getByRole('textbox', { name: 'Find in this conversation' });
  await expect(find).toBeFocused();
  await find.fill('question 10');
  // Question 10, 100, 102, …, 108
  await expect(page.getByRole('search')).toContainText('6 of 6');
  await expect(thread(page).getByText('Question 108', { exact: true })).toBeInViewport();
  await find.press('Enter');
  await expect(page.getByRole('search')).toContainText('5 of 6');
  await expect(thread(page).getByText('Question 106', { exact: true })).toBeInViewport();
  expect(await page.evaluate(() => [...(CSS.highlights.get('found') ?? [])].map(String))).toEqual([
    'Question 10',
  ]);
  for (let press = 0; press < 4; press += 1) await find.press('Enter');
  await expect(thread(page).getByText('Question 10', { exact: true })).toBeInViewport();
  await find.press('Shift+Enter');
  await expect(thread(page).getByText('Question 100', { exact: true })).toBeInViewport();
  await expectAccessible(page);
  await find.fill('nowhere');
  await expect(page.getByRole('search')).toContainText('Not found');
  await find.press('Escape');
  await expect(find).toHaveCount(0);
  await expect(thread(page)).toBeFocused();

  await page.getByRole('button', { name: 'More about this chat' }).click();
  await page.getByRole('menuitem', { name: 'Find in this conversation' }).click();
  await expect(find).toBeFocused();
});

test('a prompt says that it was sent, changing it says what becomes of it, and the head of the chat is one line', async ({
  page,
  place,
}) => {
  await page.setViewportSize({ width: 375, height: 812 });
  const relay = await openLong(page, place);
  await say(page, 'hello');
  const prompt = articles(page).filter({ hasText: 'hello' });
  await expect(prompt.getByRole('img', { name: 'Sent' })).toHaveCount(1);
  const head = await page.getByRole('heading', { level: 1 }).locator('xpath=../..').boundingBox();
  expect(head?.height ?? 0).toBeLessThan(56);
  const runId = String(relay.sent.findLast(({ method }) => method === 'chat.send')?.params.idempotencyKey);
  relay.chat({ runId, state: 'final', message: text('Hello.') });
  await prompt.getByRole('button', { name: 'Edit and send again' }).click();
  await expect(page.getByText('It is sent as a new one.')).toBeVisible();
  await expect(composer(page)).toHaveValue('hello');
});

test('the top of a thread brings what is older, and what one reads stays where it is', async ({
  page,
  place,
}) => {
  const relay = await openLong(page, place, 460);
  await say(page, 'go on');
  await expect.poll(() => relay.sent.some(({ method }) => method === 'chat.send')).toBe(true);
  const runId = String(relay.sent.findLast(({ method }) => method === 'chat.send')?.params.idempotencyKey);
  relay.chat({ runId, state: 'delta', message: text('A first word.') });
  await expect(replies(page).last()).toContainText('A first word.');

  await thread(page).evaluate((element) => (element.scrollTop = 700));
  await expect(thread(page).getByText('Question 264', { exact: true })).toBeVisible();
  await settled(page);
  const before = await firstInView(page);
  await thread(page).evaluate((element) => element.scrollBy(0, -350));
  await expect(articles(page).first()).toHaveAttribute('aria-setsize', '462');
  relay.chat({ runId, state: 'delta', message: text('A first word. A second.') });
  await settled(page);
  expect(Math.abs(((await topOf(page, before.message)) ?? 0) - before.top - 350)).toBeLessThan(3);

  // Up to the very first one, without a jump.
  const box = await thread(page).boundingBox();
  await page.mouse.move((box?.x ?? 0) + 200, (box?.y ?? 0) + 200);
  for (let step = 0; step < 5; step += 1) await wheelBack(page, 150);
  await thread(page).press('Home');
  await expect(thread(page).getByText('Question 0', { exact: true })).toBeInViewport();
  await expect(page.getByText('The conversation begins here.')).toBeInViewport();
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await expect(replies(page).last()).toContainText('A first word. A second.');
  expect(
    relay.sent.filter(({ method }) => method === 'chat.history').map(({ params }) => params.limit),
  ).toEqual([200, 1000]);
});

test('more than the assistant answers: the top of the thread leads to the history', async ({
  page,
  place,
}) => {
  await openLong(page, place, 1200);
  await thread(page).press('Home');
  await expect(articles(page).first()).toHaveAttribute('aria-setsize', '1000');
  await settled(page);
  await thread(page).press('Home');
  const link = page.getByRole('link', { name: 'Older ones are on the History page' });
  await expect(link).toBeInViewport();
  await expectAccessible(page);
  await link.click();
  await expect(page.getByRole('heading', { level: 1, name: 'History' })).toBeVisible();
  await expect(page).toHaveURL(/instance=pool-/);
});

test('over the platform: older messages load at the top, say so when they cannot, and come page by page', async ({
  page,
  place,
  watch,
}) => {
  watch.allow(/status of 500/);
  await withoutRelay(page);
  await withSaves(page);
  const all = Array.from({ length: 120 }, (_, index) => ({
    id: `s${index}`,
    instance_id: 'x',
    session_key: 'tides',
    role: index % 2 === 0 ? 'user' : 'assistant',
    content:
      index % 2 === 0 ? `Question ${index}` : `Answer ${index}\n\n${'Water rises.\n\n'.repeat(index % 9)}`,
    tokens: 0,
    created_at: new Date(1_794_000_000_000 + index * 1000).toISOString(),
  }));
  let broken = true;
  let held = 0;
  let release: () => void = () => undefined;
  await page.route('**/me/chat/conversations?*', (route) => {
    const list = [{ session_key: 'tides', last_message_at: all[119]?.created_at }];
    return route.fulfill({ json: { code: '0000', data: { list, total: 1 }, msg: 'ok' } });
  });
  await page.route('**/me/chat/history?*', async (route) => {
    const before = new URL(route.request().url()).searchParams.get('before');
    if (before === 's70') {
      await new Promise<void>((resolve) => {
        release = resolve;
        held += 1;
      });
      if (broken) {
        await route.fulfill({ status: 500, json: { code: '5000', data: null, msg: 'failed' } });
        return;
      }
    }
    const end = before === null ? all.length : all.findIndex(({ id }) => id === before);
    const messages = all.slice(Math.max(0, end - 50), end).reverse();
    await route.fulfill({
      json: { code: '0000', data: { messages, total: end, page: 1, size: 50 }, msg: 'ok' },
    });
  });
  await place.open(page, await place.newEmployee());
  await expect(thread(page).getByText('Answer 119')).toBeVisible();
  await thread(page).press('Home');
  await expect(page.getByText('Loading older messages…')).toBeInViewport();
  await expect.poll(() => held).toBe(1);
  release();
  await expect(page.getByText('Older messages could not be loaded.')).toBeInViewport();
  await expectAccessible(page);
  const again = page.getByRole('status').getByRole('button', { name: 'Try again' });
  await page.setViewportSize({ width: 375, height: 812 });
  await settled(page);
  expect((await again.boundingBox())?.height).toBeLessThan(40);
  await page.setViewportSize({ width: 1280, height: 800 });
  broken = false;
  await again.click();
  await expect(page.getByText('Loading older messages…')).toBeInViewport();
  await settled(page);
  const first = await firstInView(page);
  await expect.poll(() => held).toBe(2);
  release();
  await expect(articles(page).first()).toHaveAttribute('aria-setsize', '100');
  await settled(page);
  expect(Math.abs(((await topOf(page, first.message)) ?? 0) - first.top)).toBeLessThan(3);
  await thread(page).press('Home');
  await expect(articles(page).first()).toHaveAttribute('aria-setsize', '120');
  await settled(page);
  await expect(async () => {
    await thread(page).press('Home');
    await expect(page.getByText('The conversation begins here.')).toBeInViewport({ timeout: 1000 });
  }).toPass();
});
