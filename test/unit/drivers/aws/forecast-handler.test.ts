import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import type { FunctionAnswer, FunctionQuestions } from '../../../support/ask-function.ts';
import { always } from '../../../support/constant-model.ts';

function ask(asked: FunctionQuestions['asked']): readonly FunctionAnswer[] {
  const models = mkdtempSync(join(tmpdir(), 'ebb-models-'));
  try {
    always(join(models, 'preemption', 'v1'), 0.2);
    const program = fileURLToPath(new URL('../../../support/ask-function.ts', import.meta.url));
    const input = JSON.stringify({ models, asked } satisfies FunctionQuestions);
    const printed = execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', program], { input });
    return JSON.parse(printed.toString().split('\n').at(-1) ?? '') as FunctionAnswer[];
  } finally {
    rmSync(models, { recursive: true, force: true });
  }
}

it('the function that asks the model reads a week once for decisions and once for questions, which look at other instants', () => {
  const [first, ...rest] = ask([
    { by: 'decision', atS: 0 },
    { by: 'decision', atS: 60 },
    { by: 'question', atS: 600 },
    // It looked before the question was asked, and decides after it.
    { by: 'decision', atS: 120 },
    { by: 'question', atS: 660 },
    { by: 'decision', atS: 180 },
  ]);
  expect(first).toMatchObject({ version: 'v1', refused: null, weeksRead: 8 });
  expect(rest.map((answer) => answer.version)).toEqual(rest.map(() => 'v1'));
  expect(rest.map((answer) => answer.weeksRead)).toEqual([0, 8, 0, 0, 0]);
});
