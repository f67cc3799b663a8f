// Says for each failed test where to look: the files that are kept of it, and what its servers wrote last.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter';

const ROOT = path.join(import.meta.dirname, '../..');
/** The content type of an attachment that is the end of a server's log. */
export const SERVER_LOG = 'text/x-server-log';

export default class FailureReporter implements Reporter {
  private readonly lines: string[] = [];

  onTestEnd(test: TestCase, result: TestResult) {
    if (result.status === 'skipped' || result.status === test.expectedStatus) return;
    const [, , file, ...titles] = test.titlePath();
    this.lines.push('', `Failed: [${file ?? ''}] › ${titles.join(' › ')}`);
    const files = result.attachments.flatMap(({ name, path: at, contentType }) =>
      at === undefined ? [] : [{ name, at, contentType }],
    );
    for (const { name, at } of files) this.lines.push(`  ${name}: ${path.relative(ROOT, at)}`);
    for (const { name, at, contentType } of files)
      if (contentType === SERVER_LOG) this.lines.push(`  the end of ${name}:`, ...quoted(at));
  }

  onEnd() {
    for (const line of this.lines) console.log(line);
  }
}

/** Set off by a bar, so that no line of it is taken for one of ours. */
function quoted(file: string): string[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => `  | ${line}`);
}
