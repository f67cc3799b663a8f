// @vitest-environment happy-dom
// A step that is written is done; what is still under way is said below it.
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { en } from '../i18n/en';
import { I18nProvider } from '../i18n/i18n';
import { TaskSteps, type TaskState } from './task-steps';

const dictionaries = { en, load: { zh: () => Promise.resolve(en) } };

/** The lines, each with whether it is done, failed or goes on. */
function lines(status: TaskState, ...written: string[]): string[] {
  const steps = written.map((line) => ({ attempt: 1, line, created_at: '2026-11-15T10:00:00Z' }));
  const holder = document.createElement('div');
  holder.innerHTML = renderToStaticMarkup(
    <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
      <TaskSteps status={status} steps={steps} />
    </I18nProvider>,
  );
  return [...holder.querySelectorAll('li')].map((item) => {
    item.querySelector('time')?.remove();
    const tone = /text-(success|danger|accent|muted)/.exec(item.querySelector('svg')?.outerHTML ?? '')?.[1];
    return `${tone} ${item.textContent.trim()}`;
  });
}

it('goes on below what is done', () => {
  expect(lines('processing', 'prepared', 'guide written')).toEqual([
    'success prepared',
    'success guide written',
    `accent ${en['task.working']}`,
  ]);
  expect(lines('processing')).toEqual([`accent ${en['task.working']}`]);
  // Retried by hand.
  expect(lines('pending', 'prepared')).toEqual(['success prepared', `muted ${en['task.waiting']}`]);
});

it('says how it ended', () => {
  expect(lines('done', 'prepared', 'ready')).toEqual(['success prepared', 'success ready']);
  expect(lines('dead', 'prepared', 'no answer')).toEqual(['success prepared', 'danger no answer']);
  expect(lines('pending')).toEqual([`muted ${en['task.waiting']}`]);
  expect(lines('done')).toEqual([`success ${en['task.noSteps']}`]);
});
