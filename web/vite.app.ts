// The Vite configuration both apps share: relative asset URLs (the server sets <base> to the public path
// prefix), hashed files under assets/, a manifest for the size check.
import path from 'node:path';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** KaTeX offers each font in three formats; every browser that runs this app reads the smallest, and the binary carries what is named. */
const woff2Only = {
  name: 'woff2-only',
  enforce: 'pre' as const,
  transform(code: string, id: string) {
    if (!/katex[^/]*\.css/.test(id)) return null;
    return { code: code.replaceAll(/,url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)/g, ''), map: null };
  },
};

/** `partBytes`: smaller parts that pages share are joined with their neighbours. */
export function app(root: string, api: string, partBytes: number) {
  return defineConfig({
    root,
    base: './',
    publicDir: path.resolve(root, '../shared/public'),
    resolve: { tsconfigPaths: true },
    plugins: [woff2Only, react(), tailwindcss()],
    build: {
      outDir: 'dist',
      emptyOutDir: true,
      manifest: true,
      target: 'es2022',
      // The Content-Security-Policy allows no data: fonts or scripts, and small files are cheap over one connection.
      assetsInlineLimit: 0,
      rolldownOptions: {
        output: {
          chunkFileNames: ({ name }) => `assets/${name.split('~')[0]}-[hash].js`,
          // The files may need each other.
          strictExecutionOrder: true,
          // What pages share, in a few files instead of dozens: each file costs a request, and the browser's own work.
          codeSplitting: {
            groups: [
              { name: 'start', tags: ['$initial'], priority: 1 },
              // Not among the parts, which join small files: few people need it, and never to begin with.
              {
                name: 'second-factor',
                test: /second-factor|node_modules[\\/](qrcode|dijkstrajs)[\\/]/,
                priority: 2,
                includeDependenciesRecursively: false,
              },
              // Joined with an icon that every page has, every page would load it.
              {
                name: 'table',
                test: /shared[\\/]src[\\/]table[\\/](columns|data-table|pager|selection|table-bar|table-rows)/,
                priority: 2,
                includeDependenciesRecursively: false,
              },
              // The menus' code comes after the page, but for a small part beside it every page would load it.
              {
                name: 'menu',
                test: /node_modules[\\/](@floating-ui|@radix-ui[\\/]react-(menu|dropdown-menu|popper|arrow|roving-focus|collection|direction|use-size))[\\/]/,
                priority: 2,
                includeDependenciesRecursively: false,
              },
              {
                name: 'parts',
                minShareCount: 2,
                entriesAware: true,
                entriesAwareMergeThreshold: partBytes,
              },
            ],
          },
        },
      },
    },
    server: { proxy: { '/api': process.env.TIDEPOOL_DEV_API ?? api } },
  });
}
