// A row of the result, and the long tasks of a page.
import { test, type Page } from '@playwright/test';

/** What, how much, and what it is to be. */
export function report(what: string, reached: string, goal: string) {
  const description = `${what.padEnd(44)} ${reached.padEnd(28)} ${goal}`;
  test.info().annotations.push({ type: 'row', description });
}

/** From now on the page remembers how long its tasks were that kept it from answering (over 50 ms). */
export async function watchTasks(page: Page) {
  await page.evaluate(() => {
    const tasks: number[] = [];
    Object.assign(window, { longTasks: tasks });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) tasks.push(duration);
    }).observe({ entryTypes: ['longtask'] });
  });
}

export const longTasks = (page: Page) =>
  page.evaluate(() => (window as unknown as { longTasks: number[] }).longTasks);

export const longest = (tasks: number[]) =>
  tasks.length === 0
    ? 'none over 50 ms'
    : `${tasks.length} over 50 ms, longest ${Math.round(Math.max(...tasks))} ms`;
