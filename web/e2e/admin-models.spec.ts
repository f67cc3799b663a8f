// Models in the console: added from what the release knows, shown with limits and prices, compared, priced and deleted, at both widths.
import { expect, expectAccessibleInBothThemes, openSignedIn, test } from './fixtures';

for (const width of [1280, 375]) {
  test(`${width} px: a model is added, priced by hand, compared, taken over and deleted`, async ({
    page,
    demo,
    app,
  }) => {
    await page.setViewportSize({ width, height: 812 });
    const id = `o4-mini-of-${width}`;
    await openSignedIn(page, app, demo, '/keys?tab=models');
    await page.getByRole('button', { name: 'Add a model' }).click();
    const adding = page.getByRole('dialog', { name: 'Add a model' });
    await adding.getByRole('combobox', { name: 'Known to this release' }).fill('o4-mini');
    await page
      .getByRole('option', { name: /^o4-mini/ })
      .first()
      .click();
    await adding.getByLabel('Name', { exact: true }).fill(id);
    await adding.getByRole('button', { name: 'Add a model' }).click();
    await expect(adding).toBeHidden();

    await page.getByRole('button', { name: id, exact: true }).click();
    const shown = page.getByRole('dialog', { name: id });
    await expect(shown.getByText('From the release’s table').first()).toBeVisible();
    await expect(shown.getByText('200,000')).toBeVisible();
    await expectAccessibleInBothThemes(page);
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: `Price of ${id}` }).click();
    const pricing = page.getByRole('dialog', { name: `Price of ${id}` });
    await pricing.getByLabel('US dollars per 1,000 tokens').fill('0.005');
    await pricing.getByRole('button', { name: 'Save' }).click();
    await expect(page.getByRole('button', { name: `Price of ${id}` })).toHaveText('$0.005 per 1K');

    await page.getByRole('button', { name: 'Compare' }).click();
    const compared = page.getByRole('dialog', { name: 'Compared with this release' });
    await compared.getByRole('button', { name: `Take over what this release says of ${id}` }).click();
    await expect(compared.getByRole('region', { name: id })).toBeHidden();
    await page.keyboard.press('Escape');
    await expect(page.getByRole('button', { name: `Price of ${id}` })).toHaveText(/ in, .* out per 1M$/);

    const sticksOut = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    expect(sticksOut).toBe(false);
    await page.getByRole('button', { name: id, exact: true }).click();
    await shown.getByRole('button', { name: 'Delete' }).click();
    await page
      .getByRole('dialog', { name: `Delete ${id}?` })
      .getByRole('button', { name: 'Delete' })
      .click();
    await expect(page.getByRole('button', { name: id, exact: true })).toBeHidden();
  });
}
