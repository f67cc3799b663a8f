// The two languages of the texts have the same keys and placeholders, and none that a dictionary has.
import { checkMessages } from '@tidepool/shared/i18n/check-messages';
import { expect, it } from 'vitest';
import { en as general } from '../messages/en';
import { en, zh } from './provider-texts';

checkMessages('provider', en, zh);

it('hides no text of the dictionary', () => {
  expect(Object.keys(en).filter((key) => key in general)).toEqual([]);
});
