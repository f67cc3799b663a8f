// Prints the rows as `tidepool-lab bench` does, and nothing else but what failed.
import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter';

export default class RowsReporter implements Reporter {
  onTestEnd(test: TestCase, result: TestResult) {
    for (const { type, description } of test.annotations) if (type === 'row') console.log(description);
    for (const { message } of result.errors) console.error(`${test.title}: ${message ?? ''}`);
  }
}
