// An assistant that a server has already is found, previewed and adopted as it is.
import { expect, openSignedIn, test } from './fixtures';

test('what a server has already is found and adopted, and nothing is changed there', async ({
  page,
  demo,
  app,
}) => {
  await openSignedIn(page, app, demo, '/servers/lis-1');
  await page.getByRole('button', { name: 'Look for assistants' }).click();
  const card = page.getByRole('region', { name: 'Assistants that are there already' });
  await expect(card.getByText('Known as lis-1-a')).toBeVisible();
  await expect(card.getByText('openclaw.service', { exact: true })).toBeVisible();
  await card.getByRole('checkbox', { name: 'Select all that can be adopted' }).check();
  await card.getByRole('button', { name: 'Adopt (1)' }).click();
  const dialog = page.getByRole('dialog', { name: 'Adopt openclaw.service' });
  await dialog.getByLabel('Id', { exact: true }).fill('marta');
  await dialog.getByLabel('Name', { exact: true }).fill('Marta’s assistant');
  await dialog.getByRole('button', { name: 'Preview' }).click();
  await expect(dialog.getByText('Nothing is changed on the server.')).toBeVisible();
  await dialog.getByRole('button', { name: 'Adopt (1)' }).click();
  await expect(dialog.getByRole('status')).toHaveText('Adopted 1, left out 0.');
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await expect(card.getByText('Known as marta')).toBeVisible();
  expect(await demo.asAdmin('GET', '/instances/marta')).toMatchObject({
    isolation: 'adopted',
    runs_as: 'marta',
    own_llm: true,
  });
  // The demo is used by others too.
  await demo.asAdmin('DELETE', '/assistant-instances/marta');
});
