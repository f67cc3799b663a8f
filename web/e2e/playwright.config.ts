// Browser tests of both apps in Debian's Chromium, against the real binary, which the suite starts itself.
import { defineConfig, devices } from '@playwright/test';

const { CI, CHROMIUM, TIDEPOOL_TEST_CHROMIUM, TIDEPOOL_TEST_REAL_URL, TIDEPOOL_TEST_REAL_NAMES } =
  process.env;

export default defineConfig({
  testDir: '.',
  // Only where the real OpenClaw runs.
  testIgnore: TIDEPOOL_TEST_REAL_URL === undefined ? ['real.spec.ts'] : [],
  outputDir: '../test-results',
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 10_000 },
  forbidOnly: CI === 'true',
  reporter: [['list'], ['./skip-reporter.ts']],
  use: {
    ...devices['Desktop Chrome'],
    viewport: { width: 1280, height: 800 },
    locale: 'en-US',
    trace: 'retain-on-failure',
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
  projects: [{ name: 'chromium' }],
});
