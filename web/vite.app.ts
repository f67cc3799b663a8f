// The Vite configuration both apps share: relative asset URLs (the server sets <base> to the public path
// prefix), hashed files under assets/, a manifest for the size check.
import path from 'node:path';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export function app(root: string, api: string) {
  return defineConfig({
    root,
    base: './',
    publicDir: path.resolve(root, '../shared/public'),
    resolve: { tsconfigPaths: true },
    plugins: [react(), tailwindcss()],
    build: {
      outDir: 'dist',
      emptyOutDir: true,
      manifest: true,
      target: 'es2022',
      // The Content-Security-Policy allows no data: fonts or scripts, and small files are cheap over one connection.
      assetsInlineLimit: 0,
    },
    server: { proxy: { '/api': process.env.TIDEPOOL_DEV_API ?? api } },
  });
}
