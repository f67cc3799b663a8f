// A change names what differs and nothing else.
import { expect, it } from 'vitest';
import { changedFields } from './changed-fields';

const record = { name: 'Quay', port: 22, pack: 'p', owner: null as string | null, files: [{ path: 'a' }] };

it('names only what differs', () => {
  expect(changedFields(record, { ...record })).toEqual({});
  expect(changedFields(record, { ...record, port: 0, files: [] })).toEqual({ port: 0, files: [] });
});

it('keeps the difference between taking something away and leaving it alone', () => {
  expect(changedFields(record, { pack: null, owner: null })).toEqual({ pack: null });
  expect(changedFields<{ pack?: string }>(record, { pack: undefined })).toEqual({});
});

it('names what the record does not show, when there is a value for it', () => {
  expect(changedFields<{ password?: string }>({}, { password: 'long enough' })).toEqual({
    password: 'long enough',
  });
});
