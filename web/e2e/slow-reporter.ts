// Names the tests that took longest, set-up included: `Slow: 12.3s  [file] › title`. testbed/suite reads these lines.
import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter';

const NAMED = 10;

export default class SlowReporter implements Reporter {
  private readonly took: { name: string; ms: number }[] = [];

  onTestEnd(test: TestCase, { duration, status }: TestResult) {
    if (status === 'skipped') return;
    const [, , file, ...titles] = test.titlePath();
    this.took.push({ name: `[${file ?? ''}] › ${titles.join(' › ')}`, ms: duration });
  }

  onEnd() {
    for (const { name, ms } of this.took.toSorted((a, b) => b.ms - a.ms).slice(0, NAMED))
      console.log(`Slow: ${(ms / 1000).toFixed(1)}s  ${name}`);
  }
}
