// What people feel of the two apps, measured in Debian's Chromium against the binary (`make bench PART=web`).
import { defineConfig } from '@playwright/test';
import tests from '../e2e/playwright.config';

export default defineConfig({
  ...tests,
  testDir: '.',
  projects: [{ name: 'bench' }],
  outputDir: '../test-results/bench',
  workers: 1,
  timeout: 300_000,
  reporter: [['./rows-reporter.ts']],
  use: { ...tests.use, trace: 'off' },
});
