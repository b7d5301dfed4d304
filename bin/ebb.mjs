#!/usr/bin/env node
// The `ebb` launcher: finds a Node that can run Ebbtide and runs bin/ebb.ts (a checkout, as a compiled copy) or
// dist/bin/ebb.js (a package) with it. Plain JavaScript with node: imports only, so that even a Node too old for the
// rest can say what is missing.
//
// Where this process is not that Node, it starts one and stands in for it:
//  - the exit code, or the signal that ended it, becomes its own;
//  - a terminal sends Ctrl-C to both processes. Once the child says that it handles signals, each signal that reaches
//    the launcher is passed on as a message, and the child counts the two arrivals as one (lib/cli/signals.ts);
//  - the message channel closes when the launcher dies, however it dies, and the child then stops as on SIGTERM.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { howToGetNode, judge, packagedNode } from './runtime.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** Set for the process that the launcher starts, so that it never starts a third. */
const RELAUNCHED = 'EBB_RELAUNCHED';

const own = judge(process.versions.node);
const packaged = own === 'tested' ? null : packagedNode(nodeModule.createRequire(import.meta.url));
if (own === 'tested' || (packaged === null && own === 'possible') || process.env[RELAUNCHED] === '1') await runHere();
else if (packaged !== null) standInFor(packaged);
else
  refuse('node-version', 'Ebbtide cannot run on this Node, and it has no Node 24 of its own here', {
    got: `Node ${process.versions.node} on ${process.platform}-${process.arch}`,
    allowed: 'Node 24 or newer (22.13 at least)',
    next: howToGetNode(),
  });

async function runHere() {
  delete process.env[RELAUNCHED];
  silenceExperimentalWarnings();
  // Compiled code is kept between runs: a third off the time of `ebb --help`.
  nodeModule.enableCompileCache?.();
  const entry = await entryPoint();
  await import(pathToFileURL(entry).href);
}

/**
 * A compiled copy of a checkout's sources, or those as they are; below node_modules, where Node runs no TypeScript,
 * what `npm run build` wrote.
 */
async function entryPoint() {
  const source = join(ROOT, 'bin', 'ebb.ts');
  const built = join(ROOT, 'dist', 'bin', 'ebb.js');
  const inPackage = ROOT.split(sep).includes('node_modules');
  if (!inPackage && existsSync(source)) {
    const { compiledCopy } = await import('./checkout.mjs');
    const copy = compiledCopy(ROOT);
    return copy === null ? source : join(copy, 'bin', 'ebb.js');
  }
  if (existsSync(built)) return built;
  if (!existsSync(source)) {
    refuse('internal', 'this package holds neither dist/ nor the sources to make it from', {
      got: ROOT,
      next: 'pack it again with `npm run package`',
    });
  }
  // Packed by a plain `npm pack` without a build before it (install scripts are off, so npm could not do it).
  try {
    const { compile } = await import('./compile.mjs');
    compile(ROOT);
  } catch (error) {
    refuse('internal', 'this package was packed without being built, and building it here failed', {
      got: String(error),
      next: `run ebb once as a user who may write to ${ROOT}, or pack it with \`npm run package\``,
    });
  }
  return built;
}

function standInFor(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [RELAUNCHED]: '1' },
  });
  let childHandlesSignals = false;
  child.on('message', (message) => {
    if (message?.handlesSignals === true) childHandlesSignals = true;
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (childHandlesSignals && child.connected) child.send({ signal });
      else child.kill(signal);
    });
  }
  child.on('error', (error) => {
    refuse('node-version', 'the packaged Node 24 does not start on this machine', {
      got: `${node}: ${error.message}`,
      next: 'install Node 24 or newer and run ebb with it',
    });
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** node:sqlite is stable enough to be what the store stands on, and still announces itself as experimental. */
function silenceExperimentalWarnings() {
  const emit = process.emit;
  process.emit = function (event, ...args) {
    if (event === 'warning' && args[0]?.name === 'ExperimentalWarning') return false;
    return emit.call(this, event, ...args);
  };
}

/** The same shape as every other error of ebb; exit codes as in lib/kernel/errors.ts. */
function refuse(code, what, { got, allowed, next }) {
  const lines = [`error: ${what} (${code})`];
  if (got !== undefined) lines.push(`  got:     ${got}`);
  if (allowed !== undefined) lines.push(`  allowed: ${allowed}`);
  if (next !== undefined) lines.push(`  next:    ${next}`);
  console.error(lines.join('\n'));
  process.exit(code === 'node-version' ? 9 : 1);
}
