import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

/*
 * Completion in real shells, each in a pseudo-terminal. `ebb` on their PATH is a wrapper: `ebb complete` is the real
 * one, and every other call is only recorded, so that a TAB that runs a command is seen.
 */

const ROOT = process.cwd();
const BASH_COMPLETION = '/usr/share/bash-completion/bash_completion';
/** Generous: one TAB starts a Node process. */
const LIMIT_S = 60;

const scratch = mkdtempSync(join(tmpdir(), 'ebb-completion-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Shell {
  readonly name: string;
  readonly program: string;
  /** Files that it needs besides its program. */
  readonly needs?: string;
  readonly command: (home: string) => readonly string[];
  readonly env?: (home: string) => Readonly<Record<string, string>>;
  /** Writes the settings that it starts with. */
  readonly prepare: (home: string, scripts: string) => void;
}

const SHELLS: readonly Shell[] = [
  {
    name: 'bash',
    program: 'bash',
    command: (home) => ['bash', '--noprofile', '--rcfile', join(home, 'rc'), '-i'],
    prepare: (home, scripts) => writeFileSync(join(home, 'rc'), `PS1='ready> '\nsource ${scripts}/ebb.bash\n`),
  },
  {
    name: 'bash with the bash-completion package',
    program: 'bash',
    needs: BASH_COMPLETION,
    command: (home) => ['bash', '--noprofile', '--rcfile', join(home, 'rc'), '-i'],
    prepare: (home, scripts) =>
      writeFileSync(join(home, 'rc'), `PS1='ready> '\nsource ${BASH_COMPLETION}\nsource ${scripts}/ebb.bash\n`),
  },
  {
    name: 'zsh',
    program: 'zsh',
    command: () => ['zsh', '-d', '-i'],
    env: (home) => ({ ZDOTDIR: home }),
    prepare: (home, scripts) =>
      writeFileSync(
        join(home, '.zshrc'),
        `PS1='ready> '\nautoload -Uz compinit && compinit -u\nsource ${scripts}/ebb.zsh\n`,
      ),
  },
  {
    name: 'fish',
    program: 'fish',
    command: (home) => ['fish', '--no-config', '-C', `source ${join(home, 'rc.fish')}`],
    prepare: (home, scripts) =>
      writeFileSync(
        join(home, 'rc.fish'),
        `function fish_prompt; echo -n 'ready> '; end\nset -g fish_greeting\nset -g fish_autosuggestion_enabled 0\nsource ${scripts}/ebb.fish\n`,
      ),
  },
];

const has = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v "$1"`, 'sh', program], { encoding: 'utf8' }).status === 0;
const isReady = ({ program, needs }: Shell): boolean =>
  has('python3') && has(program) && (needs === undefined || existsSync(needs));
for (const shell of SHELLS) {
  if (isReady(shell)) continue;
  const what = `skipped: completion in ${shell.name}; it takes python3, ${shell.needs ?? shell.program}`;
  if (process.env['EBB_REQUIRE_SHELLS'] === '1') throw new Error(what);
  process.stderr.write(`${what}\n`);
}

const TAB = '\t';
const ENTER = '\r';

let scripts = '';
beforeAll(() => {
  scripts = join(scratch, 'scripts');
  mkdirSync(scripts);
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout, status } = spawnSync(process.execPath, ['bin/ebb.mjs', 'completion', shell], { encoding: 'utf8' });
    expect(status).toBe(0);
    writeFileSync(join(scripts, `ebb.${shell}`), stdout);
  }
});

interface Typed {
  /** Calls of `ebb` other than `ebb complete`, by their arguments. */
  readonly calls: readonly (readonly string[])[];
  /** Without control sequences. */
  readonly shown: string;
  readonly folder: string;
}

/**
 * Types a line, its TABs one by one, then Enter unless told otherwise. With `candidates` the wrapper answers with those
 * lines.
 */
function type(shell: Shell, line: string, given: { readonly candidates?: string; readonly enter?: false } = {}): Typed {
  const home = mkdtempSync(join(scratch, 'home-'));
  const folder = join(home, 'work');
  const bin = join(home, 'bin');
  for (const made of [folder, bin, join(folder, 'folder')]) mkdirSync(made);
  writeFileSync(join(folder, 'my job.yaml'), 'command: "true"\n');
  const [log, calls, fake] = [join(home, 'completions'), join(home, 'calls'), join(home, 'candidates')];
  if (given.candidates !== undefined) writeFileSync(fake, given.candidates);
  const real = `"${process.execPath}" "${join(ROOT, 'bin', 'ebb.mjs')}" "$@"`;
  const wrapper = [
    '#!/bin/sh',
    'if [ "$1" = complete ]; then',
    `  if [ -f "${fake}" ]; then cat "${fake}"; else ${real}; fi`,
    `  echo done >>"${log}"; exit`,
    'fi',
    `{ for word; do printf '%s\\037' "$word"; done; echo; } >>"${calls}"`,
  ];
  writeFileSync(join(bin, 'ebb'), `${wrapper.join('\n')}\n`, { mode: 0o755 });
  shell.prepare(home, scripts);

  const steps: object[] = [{ wait: 'ready> ' }];
  const pieces = line.split(TAB);
  pieces.forEach((piece, i) => {
    const isLast = i === pieces.length - 1;
    if (piece !== '' || !isLast) steps.push({ send: isLast ? piece : piece + TAB });
    if (!isLast) steps.push({ in: log, lines: i + 1 });
  });
  if (given.enter !== false) steps.push({ send: ENTER }, { in: calls, lines: 1 });
  const driven = spawnSync(
    'python3',
    [join(ROOT, 'test', 'support', 'terminal.py'), String(LIMIT_S), ...shell.command(home)],
    {
      encoding: 'utf8',
      cwd: folder,
      input: JSON.stringify(steps),
      env: {
        PATH: `${bin}:${process.env['PATH'] ?? ''}`,
        HOME: home,
        TERM: 'xterm',
        LANG: 'C.UTF-8',
        // The wrapper's jobs are nobody's: no engine is asked.
        EBB_URL: 'http://127.0.0.1:9',
        ...shell.env?.(home),
      },
    },
  );
  const shown = stripVTControlCharacters(driven.stdout);
  if (driven.status !== 0) throw new Error(`${driven.stderr}\n${shown}`);
  const recorded = existsSync(calls) ? readFileSync(calls, 'utf8').split('\n').filter(Boolean) : [];
  return { calls: recorded.map((call) => call.split('\u001f').slice(0, -1)), shown, folder };
}

describe.each(SHELLS.map((shell) => [shell.name, shell] as const))('completion in %s', (_name, shell) => {
  const test = isReady(shell) ? it : it.skip;
  const MINUTES = 240_000;

  test(
    'TAB completes a command, and runs none',
    () => {
      const { calls } = type(shell, `ebb ru${TAB}`);
      expect(calls).toEqual([['run']]);
    },
    MINUTES,
  );

  test(
    'a list shows descriptions as they are, and runs nothing that they name',
    () => {
      // Bash lists at the second TAB.
      const { calls, shown } = type(shell, `ebb run --${shell.program === 'bash' ? TAB + TAB : TAB}`, { enter: false });
      expect(shown).toContain('--resume');
      expect(shown).toContain('which policies decide: see `ebb config --presets`');
      expect(calls).toEqual([]);
    },
    MINUTES,
  );

  test.each([
    [`ebb run --preset gre${TAB}`, ['run', '--preset', 'greedy']],
    [`ebb run --preset=gre${TAB}`, ['run', '--preset=greedy']],
    [`ebb jobs --state run${TAB}`, ['jobs', '--state', 'running']],
    [`ebb run --set maxLateP${TAB}0.1`, ['run', '--set', 'maxLateProbability=0.1']],
    [`ebb simulate --compare greedy,unif${TAB}`, ['simulate', '--compare', 'greedy,uniform-progress']],
    [`ebb run my${TAB}`, ['run', 'my job.yaml']],
    [`ebb simulate --market=my${TAB}`, ['simulate', '--market=my job.yaml']],
    [`ebb up --dir fol${TAB}`, ['up', '--dir', 'folder']],
  ])(
    '%j',
    (line, expected) => {
      const { calls } = type(shell, line);
      // Zsh takes the slash after a folder back where the word ends.
      expect(calls.map((words) => words.map((word) => word.replace(/^folder\/$/, 'folder')))).toEqual([expected]);
    },
    MINUTES,
  );

  test(
    'runs no command substitution of the line',
    () => {
      // Fish has no back-ticks, and bash completes nothing after them.
      for (const word of ['$(touch ran)', ...(shell.program === 'zsh' ? ['`touch ran`'] : [])]) {
        const { calls, folder } = type(shell, `ebb run ${word} --pre${TAB}`, { enter: false });
        expect(existsSync(join(folder, 'ran'))).toBe(false);
        expect(calls).toEqual([]);
      }
    },
    MINUTES,
  );

  test(
    'a candidate with special characters is quoted, never run',
    () => {
      const value = "a$(touch ran)`touch ran`;'b";
      const { calls, folder } = type(shell, `ebb status ${TAB}`, {
        candidates: `${value}\tsee \`touch ran\`\n:none\n`,
      });
      expect(existsSync(join(folder, 'ran'))).toBe(false);
      expect(calls).toEqual([['status', value]]);
    },
    MINUTES,
  );
});
