// The providers of the embedded gateway in the console: how each is doing, its keys, the form and the test.
import { expect, openSignedIn, test } from './fixtures';

test('providers are listed with their keys, and one that cools down says why', async ({
  page,
  demo,
  app,
}) => {
  await openSignedIn(page, app, demo, '/keys?tab=providers');
  await expect(page.getByText('https://api.deepseek.com')).toBeVisible();
  await expect(page.getByText('https://api.mistral.ai')).toBeVisible();
  await expect(page.getByText('…7f3a')).toBeVisible();
  await expect(page.getByText('key refused', { exact: true })).toBeVisible();
  await expect(page.getByText(/Asked again in/)).toBeVisible();
  await expect(page.getByText('Partly works')).toBeVisible();
});

test('a provider is made from a preset, switched off, and deleted', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo, '/keys?tab=providers');
  await page.getByRole('button', { name: 'Add a provider' }).click();
  const form = page.getByRole('dialog', { name: 'Add a provider' });
  await form.getByLabel('Provider', { exact: true }).selectOption({ label: 'Groq' });
  await expect(form.getByLabel('Base URL')).toHaveValue('https://api.groq.com/openai');
  await expect(form.getByText(/refuses logprobs/)).toBeVisible();
  await form.getByLabel('Name', { exact: true }).fill('groq');
  await form.getByLabel('Key', { exact: true }).fill('a-key-of-nobody-at-groq-0042');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form).toHaveCount(0);
  await expect(page.getByText('…0042')).toBeVisible();
  await page.getByRole('switch', { name: 'Ask groq' }).click();
  await expect(page.getByRole('switch', { name: 'Ask groq' })).not.toBeChecked();
  const { list } = (await demo.asAdmin('GET', '/providers')) as {
    list: { name: string; enabled: boolean }[];
  };
  expect(list.find((one) => one.name === 'groq')).toMatchObject({ enabled: false });
  await page.getByRole('button', { name: 'Actions of groq' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  const asking = page.getByRole('dialog', { name: 'Delete groq?' });
  await asking.getByLabel('Type groq to confirm').fill('groq');
  await asking.getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText('https://api.groq.com/openai')).toHaveCount(0);
});

test('a private address is refused, and the form says so', async ({ page, demo, app, watch }) => {
  watch.allow(/status of 400/);
  await openSignedIn(page, app, demo, '/keys?tab=providers');
  await page.getByRole('button', { name: 'Add a provider' }).click();
  const form = page.getByRole('dialog', { name: 'Add a provider' });
  await form.getByLabel('Provider', { exact: true }).selectOption({ label: 'vLLM' });
  await form.getByLabel('Name', { exact: true }).fill('rack');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByText(/private address/)).toBeVisible();
});

test('a test shows what came back', async ({ page, demo, app }) => {
  // A name that leads nowhere, by the rules for such names.
  const made = (await demo.asAdmin('POST', '/providers', {
    name: 'nowhere',
    kind: 'compatible',
    base_url: 'https://provider.invalid',
    keys: ['a-key-of-nobody-nowhere-0007'],
  })) as { id: string };
  await openSignedIn(page, app, demo, '/keys?tab=providers');
  await page.getByRole('button', { name: 'Actions of nowhere' }).click();
  await page.getByRole('menuitem', { name: 'Test' }).click();
  const form = page.getByRole('dialog', { name: 'Test nowhere' });
  await form.getByLabel('Model').fill('any');
  await form.getByRole('button', { name: 'Send' }).click();
  await expect(form.getByText(/No answer after/)).toBeVisible({ timeout: 40_000 });
  await demo.asAdmin('DELETE', `/providers/${made.id}`);
});
