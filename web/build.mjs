// Bundles the page into core/web/static, or into the folder that is given: node build.mjs [FOLDER]
import { build } from 'esbuild';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, '..', 'core', 'web', 'static');
mkdirSync(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: 'src/main.ts', 'app-style': 'src/style.css' },
  outdir: out,
  bundle: true,
  minify: true,
  charset: 'utf8',
  target: 'es2022',
  format: 'esm',
  legalComments: 'none',
  banner: {
    js: '// variant-ai, GPL-3.0-or-later; with chessgroundx, GPL-3.0. Sources: web/ of the repository.',
  },
  logLevel: 'warning',
});
for (const name of ['index.html', 'icon.svg']) copyFileSync(join(here, 'src', name), join(out, name));
