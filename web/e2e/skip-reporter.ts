// Counts and names the skipped tests; in CI, where the machine can give everything, a skip fails the run.
import type { FullResult, Reporter, TestCase, TestResult } from '@playwright/test/reporter';

export default class SkipReporter implements Reporter {
  private readonly skipped: string[] = [];

  onTestEnd(test: TestCase, result: TestResult) {
    if (result.status !== 'skipped') return;
    const reason = test.annotations.find(({ type }) => type === 'skip')?.description ?? 'no reason given';
    this.skipped.push(`${test.titlePath().filter(Boolean).join(' › ')}: ${reason}`);
  }

  onEnd(): Promise<{ status: FullResult['status'] } | undefined> {
    for (const line of this.skipped) console.log(`Skipped: ${line}`);
    if (this.skipped.length === 0 || process.env.CI !== 'true') return Promise.resolve(undefined);
    console.log(`CI is set: skipping ${this.skipped.length} fails the run.`);
    return Promise.resolve({ status: 'failed' });
  }
}
