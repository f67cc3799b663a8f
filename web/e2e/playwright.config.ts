// Browser tests of both apps in Debian's Chromium, against the real binary, which the suite starts itself.
import { defineConfig, devices } from '@playwright/test';

const { CI, CHROMIUM, TIDEPOOL_TEST_CHROMIUM, TIDEPOOL_TEST_REAL_URL, TIDEPOOL_TEST_REAL_NAMES } =
  process.env;

const ALONE = /\.alone\.spec\.ts$/;
/** Only where the real OpenClaw runs. */
const REAL = TIDEPOOL_TEST_REAL_URL === undefined ? ['real.spec.ts'] : [];

export default defineConfig({
  testDir: '.',
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 10_000 },
  forbidOnly: CI === 'true',
  reporter: [['list'], ['./skip-reporter.ts'], ['./slow-reporter.ts'], ['./failure-reporter.ts']],
  use: {
    ...devices['Desktop Chrome'],
    viewport: { width: 1280, height: 800 },
    locale: 'en-US',
    // Its snapshots show each step; a film beside them would cost every test a third more.
    trace: { mode: 'retain-on-failure', screenshots: false },
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: TIDEPOOL_TEST_CHROMIUM ?? CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        // Names of hosts that no name server knows.
        `--host-resolver-rules=${TIDEPOOL_TEST_REAL_NAMES ?? ''}`,
      ],
    },
  },
  // A run of one project leaves what is kept of the other's failed tests.
  projects: [
    { name: 'chromium', testIgnore: [ALONE, ...REAL], outputDir: '../test-results/chromium' },
    { name: 'alone', testMatch: ALONE, dependencies: ['chromium'], outputDir: '../test-results/alone' },
  ],
});
