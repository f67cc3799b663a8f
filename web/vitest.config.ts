// Unit tests of both apps and the shared code run together. A file that needs a browser's document says so in its first line: to make
// one takes longer than most files' tests.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    environment: 'node',
    // Sockets are dialled again after a second or more; what a test waits for has a bound of its own.
    testTimeout: 20_000,
    include: ['{shared,employee,admin}/src/**/*.test.{ts,tsx}', 'scripts/*.test.ts'],
  },
});
