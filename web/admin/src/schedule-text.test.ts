// Every form in which the server tells a job's times has its own words.
import { fill } from '@tidepool/shared/i18n/translate';
import { expect, it } from 'vitest';
import { en } from './messages/en';
import { scheduleText } from './schedule-text';

it.each([
  ['every 5 s', 'every 5 seconds'],
  ['every 30 min', 'every 30 minutes'],
  ['every 15 min at :02', 'every 15 minutes, first at :02'],
  ['hourly at :25', 'hourly at :25'],
  ['daily at 03:20', 'daily at 03:20'],
  ['when the moon is full', 'when the moon is full'],
])('%s', (schedule, text) => {
  expect(scheduleText(schedule, (key, values) => fill(en[key], values, 'en'))).toBe(text);
});
