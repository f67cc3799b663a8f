// The two languages of the import have the same keys and placeholders, and none that a dictionary has.
import { checkMessages } from '@tidepool/shared/i18n/check-messages';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { en as general } from '../messages/en';
import { en, zh } from './import-texts';

checkMessages('import', en, zh);

it('hides no text of the dictionary', () => {
  expect(Object.keys(en).filter((key) => key in general)).toEqual([]);
});

it('has a text for every reason that the server may give', () => {
  const file = path.join(import.meta.dirname, '../../../../openapi/admin.json');
  const document = JSON.parse(readFileSync(file, 'utf8')) as {
    components: { schemas: { ImportReason: { enum: string[] } } };
  };
  const reasons = document.components.schemas.ImportReason.enum;
  expect(reasons).toContain('pool_empty');
  expect(reasons.filter((reason) => !(`import.reason.${reason}` in en))).toEqual([]);
});
