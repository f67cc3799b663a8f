// Assistants that a server has already are found, previewed and adopted as they are.
import { generateKeyPairSync } from 'node:crypto';
import type { Locator } from '@playwright/test';
import { expect, expectAccessibleInBothThemes, openSignedIn, test } from './fixtures';
import { recordSecrets, type Server } from './server';

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
  await expect(dialog.getByLabel('Id', { exact: true })).toHaveValue('marta');
  await dialog.getByLabel('Name', { exact: true }).fill('Marta’s assistant');
  await dialog.getByRole('button', { name: 'Preview' }).click();
  await expect(dialog.getByText('Nothing is changed on the server.')).toBeVisible();
  await dialog.getByRole('button', { name: 'Adopt (1)' }).click();
  await expect(dialog.getByRole('status')).toHaveText('Adopted 1, left out 0.');
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await expect(card.getByText('Known as marta')).toBeVisible();
  expect(await demo.asAdmin('GET', '/instances/marta')).toMatchObject({
    isolation: 'adopted',
    runner: 'unit',
    runs_as: 'marta',
    own_llm: true,
  });
  // The demo is used by others too.
  await demo.asAdmin('DELETE', '/assistant-instances/marta');
});

test('a record whose gateway is not there says so, and is looked for and made', async ({
  page,
  demo,
  app,
}) => {
  await openSignedIn(page, app, demo, '/instances?new=1');
  const form = page.getByRole('dialog', { name: 'New instance' });
  await form.getByLabel('Name', { exact: true }).fill('Driftwood');
  await form.getByLabel('Id', { exact: true }).fill('driftwood');
  await form.getByLabel('Port', { exact: true }).fill('23456');
  await form.getByRole('checkbox', { name: 'Set it up on the server now' }).uncheck();
  await form.getByRole('button', { name: 'Create' }).click();
  const left = page.getByRole('dialog', { name: 'Driftwood is created, but it is on no server' });
  await expect(left.getByText(/^Nothing was adopted: no gateway of OpenClaw has port 23456/)).toBeVisible();
  await left.getByRole('button', { name: 'Open Driftwood' }).click();

  const panel = page.getByRole('dialog', { name: 'Driftwood' });
  await expect(panel.getByText('It is on no server yet')).toBeVisible();
  await panel.getByRole('button', { name: 'Look for it on its server' }).click();
  const look = page.getByRole('dialog', { name: /^Look for Driftwood on/ });
  await look.getByRole('button', { name: 'Look for it' }).click();
  await expect(look.getByText(/^Nothing was adopted: no gateway/)).toBeVisible();
  await expectAccessibleInBothThemes(page);
  await look.getByRole('button', { name: 'Close' }).first().click();

  await panel.getByRole('button', { name: 'Make it on its server' }).click();
  await expect(panel.getByText('It is on no server yet')).toHaveCount(0, { timeout: 30_000 });
  const made = () => demo.asAdmin('GET', '/instances/driftwood');
  await expect.poll(made, { timeout: 30_000 }).toMatchObject({ isolation: 'own', runner: 'unit' });
  await demo.asAdmin('DELETE', '/assistant-instances/driftwood');
});

const ENGLISH = {
  locale: 'en-US',
  server: { id: 'ams-1', name: 'Amsterdam 1' },
  addServer: 'Add a server',
  name: 'Name',
  id: 'Id',
  host: 'Host',
  port: 'SSH port',
  key: 'SSH key',
  card: 'Assistants that are there already',
  source: 'Find the e-mails of their employees',
  field: 'E-mail from a field of the configuration',
  look: 'Look for assistants',
  summary: '7 can be adopted, 2 cannot.',
  reasons: [/^Its configuration cannot be parsed\./, /^Its gateway has no token/],
  all: 'Select all that can be adopted',
  adopt: 'Adopt (7)',
  dialog: 'Adopt 7 assistants',
  email: 'Employee’s e-mail',
  preview: 'Preview',
  done: 'Adopted 7, left out 2.',
  leftOut: [/^openclaw-archive.service Left out: Its conf/, /^openclaw-trial.service Left out: Its gateway/],
};

const CHINESE: typeof ENGLISH = {
  locale: 'zh-CN',
  server: { id: 'ams-2', name: '阿姆斯特丹' },
  addServer: '添加服务器',
  name: '名称',
  id: '标识',
  host: '主机',
  port: 'SSH 端口',
  key: 'SSH 密钥',
  card: '服务器上已有的助手',
  source: '查找对应员工的邮箱',
  field: '从配置字段读取邮箱',
  look: '查找助手',
  summary: '7 个可以接管，2 个不能接管。',
  reasons: [/^其配置无法解析。/, /^其网关没有令牌/],
  all: '选择所有可接管的助手',
  adopt: '接管（7）',
  dialog: '接管 7 个助手',
  email: '员工邮箱',
  preview: '预览',
  done: '已接管 7 个，未接管 2 个。',
  leftOut: [/^openclaw-archive.service 未接管：其配置/, /^openclaw-trial.service 未接管：其网关/],
};

/** What `tidepool-lab demo` writes of the server that nobody has added. */
const ADDRESS = /can be added in the console: host (\S+), SSH port (\d+)/;

for (const words of [ENGLISH, CHINESE]) {
  test.describe(words.locale, () => {
    test.use({ locale: words.locale });

    test('from a server to add to its adopted assistants in fewer than ten clicks', async ({
      page,
      demo,
      app,
    }) => {
      const [, host = '', port = ''] = demo.written(ADDRESS);
      await openSignedIn(page, app, demo, '/servers');
      let clicks = 0;
      const click = async (target: Locator) => {
        clicks += 1;
        await target.click();
      };

      await click(page.getByRole('button', { name: words.addServer }));
      const form = page.getByRole('dialog', { name: words.addServer });
      await form.getByLabel(words.name, { exact: true }).fill(words.server.name);
      await form.getByLabel(words.id, { exact: true }).fill(words.server.id);
      await form.getByLabel(words.host, { exact: true }).fill(host);
      await form.getByLabel(words.port).fill(port);
      await form.getByLabel(words.key, { exact: true }).fill(await sshKey());
      await click(form.getByRole('button', { name: words.addServer }));
      await expect(page.getByRole('heading', { level: 1 })).toHaveText(words.server.name);

      const card = page.getByRole('region', { name: words.card });
      await click(card.getByText(words.source));
      await card.getByLabel(words.field).fill('env.vars.OWNER');
      await click(card.getByRole('button', { name: words.look }));
      await expect(card.getByRole('status')).toHaveText(words.summary);
      for (const reason of words.reasons) await expect(card.getByText(reason)).toBeVisible();
      await click(card.getByRole('checkbox', { name: words.all }));
      await click(card.getByRole('button', { name: words.adopt }));

      const dialog = page.getByRole('dialog', { name: words.dialog });
      const ids = dialog.getByLabel(words.id, { exact: true });
      await expect(ids).toHaveCount(7);
      const adopted = (await valuesOf(ids)).map((id) => `${id}-${words.server.id}`);
      // An id that was used once stays taken, and both languages adopt the same assistants.
      for (const [at, id] of adopted.entries()) await ids.nth(at).fill(id);
      const emails = await valuesOf(dialog.getByLabel(words.email));
      expect(emails.filter((email) => email.endsWith('@demo.example'))).toHaveLength(5);
      await click(dialog.getByRole('button', { name: words.preview }));
      await click(dialog.getByRole('button', { name: words.adopt }));
      await expect(dialog.getByRole('status')).toHaveText(words.done);
      expect(clicks).toBeLessThan(10);

      const lines = dialog.getByRole('listitem');
      await expect(lines).toHaveCount(9);
      for (const line of words.leftOut) await expect(lines.filter({ hasText: line })).toHaveCount(1);
      await expectAccessibleInBothThemes(page);
      expect(await demo.asAdmin('GET', `/instances/${adopted[0] ?? ''}`)).toMatchObject({
        isolation: 'adopted',
        runner: 'unit',
        runs_as: 'aiko',
        assigned_email: 'aiko@demo.example',
      });
      await remove(demo, words.server.id, adopted);
    });
  });
}

/** The simulated servers let everybody in who has a key. */
async function sshKey(): Promise<string> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const text = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  // Not its first line, which is no secret.
  await recordSecrets([text.split('\n')[1] ?? '']);
  return text;
}

function valuesOf(fields: Locator): Promise<string[]> {
  return fields.evaluateAll((all) => all.map((one) => (one instanceof HTMLInputElement ? one.value : '')));
}

/** The demo is used by others too. */
async function remove(demo: Server, server: string, instances: readonly string[]) {
  for (const id of instances) await demo.asAdmin('DELETE', `/assistant-instances/${id}`);
  // Their tasks need the server.
  const waiting = async () => {
    const lists = await Promise.all(
      instances.map((id) => demo.asAdmin('GET', `/tasks?instance_id=${id}&page=1&page_size=50`)),
    );
    const all = (lists as { list: { status: string }[] }[]).flatMap(({ list }) => list);
    return all.filter(({ status }) => status === 'pending' || status === 'processing').length;
  };
  await expect.poll(waiting, { timeout: 30_000 }).toBe(0);
  await demo.asAdmin('DELETE', `/servers/${server}`);
}
