// Usage in the console at both widths: what caches gave, people who have left, usage by two things at once and its file.
import { expect, expectNoOverflow, openSignedIn, test } from './fixtures';

for (const width of [1280, 375]) {
  test(`${width} px: usage by two things at once, of somebody who has left too, and its file`, async ({
    page,
    demo,
    app,
  }) => {
    await page.setViewportSize({ width, height: 812 });
    await openSignedIn(page, app, demo, '/usage');
    await expect(page.getByText('Input from the cache')).toBeVisible();
    // The table inside has the same name.
    const card = page.getByRole('region', { name: 'By two at once' }).first();
    const rows = card.locator('[data-row]');
    const rowOf = (email: string) => rows.filter({ hasText: email }).first();
    await expect(rowOf('rosa@demo.example')).toContainText('Former employee');
    await expect(rowOf('jonas@demo.example')).toBeVisible();
    await expect(rowOf('jonas@demo.example')).not.toContainText('Former employee');
    await expectNoOverflow(page);

    await card.getByRole('combobox', { name: 'Group by' }).selectOption('department');
    await card.getByRole('combobox', { name: 'and by' }).selectOption('instance');
    await expect(page).toHaveURL(/first=department&second=instance/);
    const ofSales = rows.filter({ hasText: 'Sales' });
    await expect(ofSales.filter({ hasText: 'Frankfurt 2 A' })).toBeVisible();
    await expect(rows.filter({ hasText: '@demo.example' })).toHaveCount(0);
    await expectNoOverflow(page);

    const download = page.waitForEvent('download');
    await card.getByRole('button', { name: 'Export as CSV' }).click();
    const saved = await download;
    expect(saved.suggestedFilename()).toBe('usage-by-department-and-instance.csv');
    let csv = '';
    for await (const piece of await saved.createReadStream()) csv += String(piece);
    const [head, ...lines] = csv.trim().split(/\r?\n/);
    expect(head).toBe(
      'department,instance,instance_name,unassigned,calls,tokens,cost_usd,known_input_tokens,cache_read_tokens',
    );
    expect(lines.filter((line) => line.startsWith('Sales,fra-2-a,Frankfurt 2 A,false,'))).toHaveLength(1);
  });

  test(`${width} px: the split by employee marks whoever has left`, async ({ page, demo, app }) => {
    await page.setViewportSize({ width, height: 812 });
    await openSignedIn(page, app, demo, '/usage?by=user');
    const split = page.getByRole('region', { name: 'Split by' });
    const links = split.getByRole('link');
    await expect(links.filter({ hasText: 'rosa@demo.example' })).toContainText('Former employee');
    await expect(links.filter({ hasText: 'jonas@demo.example' })).not.toContainText('Former employee');
    await expectNoOverflow(page);
  });
}
