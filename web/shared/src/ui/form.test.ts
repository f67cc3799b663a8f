// @vitest-environment happy-dom
// A field that was refused gets the cursor, of whatever kind it is.
import { expect, it } from 'vitest';
import { showField } from './form';

it('finds every kind of field, and says when there is none', () => {
  document.body.innerHTML =
    '<form><input name="host" /><textarea name="expected_host_key"></textarea><select name="status"></select></form>';
  const form = document.querySelector('form');
  for (const name of ['host', 'expected_host_key', 'status']) {
    expect(showField(form, name)).toBe(true);
    expect(document.activeElement?.getAttribute('name')).toBe(name);
  }
  expect(showField(form, 'server_id')).toBe(false);
  expect(showField(null, 'host')).toBe(false);
});
