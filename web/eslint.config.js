// Lint rules of all web code: type-aware TypeScript, hooks, accessibility of JSX.
import js from '@eslint/js';
import jsxA11y from 'eslint-plugin-jsx-a11y';
import reactHooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['**/dist/', '**/node_modules/', '**/*.gen.ts', 'test-results/'] },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [
      tseslint.configs.strictTypeChecked,
      tseslint.configs.stylisticTypeChecked,
      reactHooks.configs.flat['recommended-latest'],
      jsxA11y.flatConfigs.strict,
    ],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { attributes: false } }],
      // An empty name is as good as none.
      '@typescript-eslint/prefer-nullish-coalescing': ['error', { ignorePrimitives: { string: true } }],
    },
  },
  {
    // Playwright names its fixture callback `use`, which the hooks rule takes for a React hook.
    files: ['e2e/**'],
    rules: {
      'react-hooks/rules-of-hooks': 'off',
      // These answer at once, before the page has drawn what an action leads to.
      'no-restricted-properties': [
        'error',
        ...['allInnerTexts', 'allTextContents'].map((property) => ({
          property,
          message: 'It does not wait: use textsOf of fixtures.ts, or expect(…).toHaveText.',
        })),
        ...['isVisible', 'isHidden', 'isEnabled', 'isDisabled', 'isChecked'].map((property) => ({
          property,
          message: 'It does not wait: use expect(…).',
        })),
      ],
    },
  },
  { files: ['**/*.{js,mjs}'], languageOptions: { globals: globals.node } },
  { files: ['shared/public/*.js'], languageOptions: { sourceType: 'script', globals: globals.browser } },
);
