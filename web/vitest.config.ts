// Unit tests of both apps and the shared code run together, in a simulated browser document.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    environment: 'happy-dom',
    include: ['{shared,employee,admin}/src/**/*.test.{ts,tsx}', 'scripts/*.test.ts'],
  },
});
