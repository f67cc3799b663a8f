// Unit tests of both apps and the shared code run together, in a simulated browser document.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    environment: 'happy-dom',
    // Sockets are dialled again after a second or more; what a test waits for has a bound of its own.
    testTimeout: 20_000,
    include: ['{shared,employee,admin}/src/**/*.test.{ts,tsx}', 'scripts/*.test.ts'],
  },
});
