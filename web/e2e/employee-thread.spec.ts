// A long conversation in a browser: only what is near the reader is in the page, and nobody notices.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, test as base } from './fixtures';
import { text, withRelay, type Relay } from './relay';
import { composer, replies, say, thread, withHistory, withSaves, Workplace } from './workplace';

const MESSAGES = 400;

const test = base.extend<object, { place: Workplace }>({
  place: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use) => {
      const place = await Workplace.start();
      await use(place);
      await place.close();
    },
    { scope: 'worker', timeout: 60_000 },
  ],
});

/** Messages of very different heights. */
function longHistory() {
  return {
    messages: Array.from({ length: MESSAGES }, (_, index) => ({
      ...(index % 2 === 0
        ? { role: 'user', content: `Question ${index}` }
        : text(`Answer **${index}**\n\n${'Water rises and falls.\n\n'.repeat(index % 14)}`)),
      timestamp: 1_794_000_000_000 + index * 1000,
    })),
  };
}

async function openLong(page: Page, place: Workplace): Promise<Relay> {
  await withHistory(page);
  await withSaves(page);
  const relay = await withRelay(page);
  relay.history = longHistory();
  await place.open(page, await place.newEmployee());
  await expect(thread(page).getByText(`Answer ${MESSAGES - 1}`)).toBeVisible();
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

/** The browser moves over several frames. */
async function settled(page: Page) {
  let before = -1;
  await expect
    .poll(
      async () => {
        const last = before;
        before = await thread(page).evaluate((element) => element.scrollTop);
        return before === last;
      },
      { intervals: [120] },
    )
    .toBe(true);
}

test('few of many messages are in the page, and each says which one it is', async ({ page, place }) => {
  await openLong(page, place);
  expect(await articles(page).count()).toBeLessThan(40);
  await expect(articles(page).last()).toHaveAttribute('aria-setsize', String(MESSAGES));
  await expect(articles(page).last()).toHaveAttribute('aria-posinset', String(MESSAGES));
  expect(await toEnd(page)).toBeLessThan(5);
  await expectAccessible(page);

  await thread(page).press('Home');
  await expect(thread(page).getByText('Question 0', { exact: true })).toBeVisible();
  await expect(articles(page).first()).toHaveAttribute('aria-posinset', '1');
  expect(await articles(page).count()).toBeLessThan(40);
  await page.getByRole('button', { name: 'To the newest' }).click();
  await expect(thread(page).getByText(`Answer ${MESSAGES - 1}`)).toBeInViewport();
  await expect.poll(() => toEnd(page)).toBeLessThan(5);
  await expect(page.getByRole('button', { name: 'To the newest' })).toHaveCount(0);
});

test('scrolling back never jumps, although heights are only known when they are drawn', async ({
  page,
  place,
}) => {
  await openLong(page, place);
  const box = await thread(page).boundingBox();
  await page.mouse.move((box?.x ?? 0) + 200, (box?.y ?? 0) + 200);
  for (let step = 0; step < 25; step += 1) {
    const before = await firstInView(page);
    await page.mouse.wheel(0, -150);
    await settled(page);
    const after = await topOf(page, before.message);
    expect(Math.abs((after ?? 0) - before.top - 150)).toBeLessThan(3);
  }
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
  const { message, top } = await thread(page).evaluate((element) => {
    const row = [...element.querySelectorAll<HTMLElement>('[data-message]')].at(-1);
    return {
      message: row?.dataset.message ?? '',
      top: Math.round((row?.getBoundingClientRect().top ?? 0) - element.getBoundingClientRect().top),
    };
  });
  for (const lines of [32, 36, 40]) {
    grow(lines);
    await page.waitForTimeout(150);
  }
  expect(await topOf(page, message)).toBe(top);

  await page.getByRole('button', { name: 'To the newest' }).click();
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
  await page.getByRole('button', { name: 'To the newest' }).click();
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
