// From an empty database to an employee who chats, all of it in the console: on a real server, reached over SSH, with systemd, where a
// stand-in for OpenClaw is the service.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, logIn, test } from './fixtures';
import { Server } from './server';
import { composer, replies, say } from './workplace';

const { TIDEPOOL_TEST_HOSTS: HOSTS } = process.env;
const STAND_IN = path.join(import.meta.dirname, '../../crates/tidepool/tests/it/kit/openclaw.py');
const PASSWORD = 'a-shell-and-a-star';

interface Hosts {
  key: string;
  hosts: { name: string; relay: string; port: number }[];
}

/** A script on the server, as root, beside the platform. */
function onServer(hosts: Hosts, script: string, input = '') {
  const host = hosts.hosts.find(({ name }) => name === 'h3');
  if (host === undefined) throw new Error('there is no host h3');
  const options = [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'BatchMode=yes',
    'LogLevel=ERROR',
  ];
  execFileSync(
    'ssh',
    [
      ...options.flatMap((option) => ['-o', option]),
      '-i',
      hosts.key,
      '-p',
      String(host.port),
      `root@${host.relay}`,
      script,
    ],
    { input },
  );
  return host;
}

test('from an empty database to an employee who chats, on a real server', async ({ page, watch }) => {
  test.skip(HOSTS === undefined, 'no hosts: TIDEPOOL_TEST_HOSTS is not set');
  test.setTimeout(240_000);
  // The server need not run containers.
  watch.allow(/status of (409|503) .*\/containers/);
  const hosts = JSON.parse(readFileSync(path.join(HOSTS ?? '', 'hosts.json'), 'utf8')) as Hosts;
  const program = '/opt/tidepool/openclaw/2026.9.6/openclaw';
  const base = `/srv/first-run-${process.pid}`;
  const host = onServer(
    hosts,
    `mkdir -p ${path.dirname(program)} && cat >${program}.new && chmod 755 ${program}.new && mv ${program}.new ${program}`,
    readFileSync(STAND_IN, 'utf8'),
  );
  const port = 30_000 + (process.pid % 1_000) * 10;
  const fresh = await Server.start();
  watch.allowOrigin(fresh.employeeUrl);
  try {
    await page.goto(fresh.adminUrl);
    await logIn(page, fresh.admin);
    await page.getByRole('region', { name: 'First steps' }).getByRole('link', { name: 'Start' }).click();
    const form = page.getByRole('dialog', { name: 'Add a server' });
    await form.getByLabel('Name').fill('Harbour');
    await form.getByLabel('Host', { exact: true }).fill(host.relay);
    await form.getByLabel('SSH port').fill(String(host.port));
    await form.getByLabel('Base folder').fill(base);
    await form.getByLabel('SSH key file').fill(hosts.key);
    await form.getByRole('button', { name: 'Add a server' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Harbour');

    // The connection test names each step.
    const trial = page.getByRole('region', { name: 'Connection test' });
    await trial.getByRole('button', { name: 'Run' }).click();
    await expect(trial.getByRole('listitem').filter({ hasText: 'systemd' })).toContainText('Done', {
      timeout: 60_000,
    });

    await page.goto(`${fresh.adminUrl}/instances?new=1`);
    const instance = page.getByRole('dialog', { name: 'New instance' });
    await instance.getByLabel('Name').fill('Pearl');
    await instance.getByLabel('Id', { exact: true }).fill('pearl');
    await instance.getByLabel('Port', { exact: true }).fill(String(port));
    await expect(instance.locator('select[name=server_id]')).not.toHaveValue('');
    await expect(instance.locator('select[name=model]')).not.toHaveValue('');
    await instance.getByRole('button', { name: 'Create' }).click();
    await expect(page.getByRole('dialog', { name: 'Pearl' })).toBeVisible();

    await page.goto(`${fresh.adminUrl}/users?new=1`);
    const user = page.getByRole('dialog', { name: 'Add an employee' });
    await user.getByLabel('E-mail').fill('first@example.test');
    await user.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await user.getByRole('button', { name: 'Add an employee' }).click();
    await expect(page.getByRole('table').getByText('first@example.test').first()).toBeVisible();

    // Set up on the server by then: its task is done.
    await page.goto(`${fresh.adminUrl}/tasks`);
    const task = page.getByRole('row').filter({ hasText: 'Provision' });
    await expect(task).toContainText(/done/i, { timeout: 90_000 });

    await page.goto(`${fresh.adminUrl}/instances?open=pearl`);
    const panel = page.getByRole('dialog', { name: 'Pearl' });
    await panel.getByRole('combobox', { name: 'Assign to an employee' }).fill('first');
    await page.getByRole('option', { name: /first@example\.test/ }).click();
    await panel.getByRole('button', { name: 'Assign', exact: true }).click();
    const assigned = panel.getByRole('paragraph').filter({ hasText: 'Assigned to' });
    await expect(assigned.getByRole('link', { name: 'first@example.test' })).toBeVisible();

    await page.goto(fresh.employeeUrl);
    await logIn(page, { email: 'first@example.test', password: PASSWORD });
    await expect(composer(page)).toBeVisible();
    await expect(page.getByText('Live', { exact: true })).toBeVisible({ timeout: 30_000 });
    await say(page, 'a first word');
    await expect(replies(page).last()).toContainText('You said: a first word', { timeout: 30_000 });
  } finally {
    await page.goto('about:blank');
    await fresh.stop();
    onServer(
      hosts,
      `systemctl disable --now openclaw-pearl; rm -f /etc/systemd/system/openclaw-pearl.service*; systemctl daemon-reload;
       getent passwd | grep -F ':${base}/' | cut -d: -f1 | while read -r user; do userdel "$user"; done; rm -rf ${base}`,
    );
  }
});
