// The providers of the embedded gateway in the console, at both widths: how each is doing, its keys, the form and the test.
import { expect, expectNoOverflow, openSignedIn, test } from './fixtures';

for (const width of [1280, 375]) {
  const viewport = { width, height: 812 };

  test(`${width} px: providers are listed with their keys, and one that cools down says why`, async ({
    page,
    demo,
    app,
  }) => {
    await page.setViewportSize(viewport);
    await openSignedIn(page, app, demo, '/keys?tab=providers');
    await expect(page.getByText('https://api.deepseek.com')).toBeVisible();
    await expect(page.getByText('https://api.mistral.ai')).toBeVisible();
    await expect(page.getByText('…7f3a')).toBeVisible();
    await expect(page.getByText('key refused', { exact: true })).toBeVisible();
    await expect(page.getByText(/Asked again in/)).toBeVisible();
    await expect(page.getByText('Partly works')).toBeVisible();
    await expectNoOverflow(page);
  });

  test(`${width} px: a provider is made from a preset, switched off, and deleted`, async ({
    page,
    demo,
    app,
  }) => {
    await page.setViewportSize(viewport);
    const name = `groq-${width}`;
    await openSignedIn(page, app, demo, '/keys?tab=providers');
    await page.getByRole('button', { name: 'Add a provider' }).click();
    const form = page.getByRole('dialog', { name: 'Add a provider' });
    await form.getByLabel('Provider', { exact: true }).selectOption({ label: 'Groq' });
    await expect(form.getByLabel('Base URL')).toHaveValue('https://api.groq.com/openai');
    await expect(form.getByText(/refuses logprobs/)).toBeVisible();
    await form.getByLabel('Name', { exact: true }).fill(name);
    await form.getByLabel('Key', { exact: true }).fill('a-key-of-nobody-at-groq-0042');
    await form.getByRole('button', { name: 'Save' }).click();
    await expect(form).toHaveCount(0);
    await expect(page.getByText('…0042')).toBeVisible();
    await page.getByRole('switch', { name: `Ask ${name}` }).click();
    await expect(page.getByRole('switch', { name: `Ask ${name}` })).not.toBeChecked();
    const { list } = (await demo.asAdmin('GET', '/providers')) as {
      list: { name: string; enabled: boolean }[];
    };
    expect(list.find((one) => one.name === name)).toMatchObject({ enabled: false });
    await page.getByRole('button', { name: `Actions of ${name}` }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    const asking = page.getByRole('dialog', { name: `Delete ${name}?` });
    await asking.getByLabel(`Type ${name} to confirm`).fill(name);
    await asking.getByRole('button', { name: 'Delete' }).click();
    await expect(page.getByText('https://api.groq.com/openai')).toHaveCount(0);
  });

  test(`${width} px: a private address is refused, and the form says so`, async ({
    page,
    demo,
    app,
    watch,
  }) => {
    watch.allow(/status of 400/);
    await page.setViewportSize(viewport);
    await openSignedIn(page, app, demo, '/keys?tab=providers');
    await page.getByRole('button', { name: 'Add a provider' }).click();
    const form = page.getByRole('dialog', { name: 'Add a provider' });
    await form.getByLabel('Provider', { exact: true }).selectOption({ label: 'vLLM' });
    await form.getByLabel('Name', { exact: true }).fill('rack');
    await form.getByRole('button', { name: 'Save' }).click();
    await expect(form.getByText(/private address/).first()).toBeVisible();
  });

  test(`${width} px: a test shows what came back`, async ({ page, demo, app }) => {
    await page.setViewportSize(viewport);
    const name = `nowhere-${width}`;
    // A name that leads nowhere, by the rules for such names.
    const made = (await demo.asAdmin('POST', '/providers', {
      name,
      kind: 'compatible',
      base_url: 'https://provider.invalid',
      keys: ['a-key-of-nobody-nowhere-0007'],
    })) as { id: string };
    await openSignedIn(page, app, demo, '/keys?tab=providers');
    await page.getByRole('button', { name: `Actions of ${name}` }).click();
    await page.getByRole('menuitem', { name: 'Test' }).click();
    const form = page.getByRole('dialog', { name: `Test ${name}` });
    await form.getByLabel('Model').fill('any');
    await form.getByRole('button', { name: 'Send' }).click();
    await expect(form.getByText(/No answer after/)).toBeVisible({ timeout: 40_000 });
    await demo.asAdmin('DELETE', `/providers/${made.id}`);
  });
}
