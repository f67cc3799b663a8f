// When a job runs, in the reader's language; the server says it in English, in a few fixed forms.
import type { Values } from '@tidepool/shared/i18n/translate';
import type { Key } from './messages';

const FORMS: readonly [RegExp, Key][] = [
  [/^every (?<count>\d+) s$/, 'jobs.everySeconds'],
  [/^every (?<count>\d+) min$/, 'jobs.everyMinutes'],
  [/^every (?<count>\d+) min at (?<past>:\d+)$/, 'jobs.everyMinutesAt'],
  [/^hourly at (?<past>:\d+)$/, 'jobs.hourlyAt'],
  [/^daily at (?<time>[\d:]+)$/, 'jobs.dailyAt'],
];

export function scheduleText(schedule: string, t: (key: Key, values?: Values) => string): string {
  for (const [form, key] of FORMS) {
    const found = form.exec(schedule);
    if (found) return t(key, { ...found.groups });
  }
  return schedule;
}
