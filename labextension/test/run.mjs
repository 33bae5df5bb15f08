// Runs the tests of what needs no browser: node test/run.mjs
//
// Node cannot read TypeScript: each file is stripped of its types, into a folder that is removed.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ts = createRequire(import.meta.url)('typescript');
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const target = mkdtempSync(join(tmpdir(), 'sfm-labextension-'));
const compilerOptions = {
  module: ts.ModuleKind.CommonJS,
  target: ts.ScriptTarget.ES2022,
  jsx: ts.JsxEmit.React,
  esModuleInterop: true
};

try {
  for (const folder of ['src', 'test']) {
    for (const entry of readdirSync(join(root, folder), { recursive: true })) {
      if (entry.endsWith('.json')) {
        cpSync(join(root, folder, entry), join(target, folder, entry));
      } else if (/\.tsx?$/.test(entry)) {
        const source = readFileSync(join(root, folder, entry), 'utf8');
        const { outputText } = ts.transpileModule(source, { compilerOptions });
        const out = join(target, folder, entry.replace(/\.tsx?$/, '.js'));
        mkdirSync(dirname(out), { recursive: true });
        writeFileSync(out, outputText);
      }
    }
  }
  const tests = readdirSync(join(target, 'test')).filter(name => name.endsWith('.test.js'));
  if (tests.length === 0) {
    throw new Error('There are no tests in test/.');
  }
  const files = tests.map(name => join(target, 'test', name));
  const { status } = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  rmSync(target, { recursive: true, force: true });
}
