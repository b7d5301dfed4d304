/**
 * Mutation tests of rooms of lib/stages, each by the unit and property tests of its own room.
 *
 *   npm run mutation [-- ROOM-OR-FILE...] [--concurrency 1] [--fresh] [--json]
 *
 * `npm run mutation -- place lib/stages/plan/fill.ts` takes a room and a file. Results are kept below .cache/mutation:
 * only mutants of changed code or changed tests run again, with `--fresh` all. Survivors are printed, then the score of
 * each room: killed mutants, of those that are neither static nor ignored. `--json` prints records for bench/results.
 */
import { Stryker } from '@stryker-mutator/core';
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { type Measured, printRecords } from '../bench/record.ts';

const ROOMS = ['place', 'scale', 'plan'] as const;
type Room = (typeof ROOMS)[number];
const TARGET = 80;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    concurrency: { type: 'string', default: '1' },
    fresh: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

interface Part {
  readonly room: Room;
  /** Files to mutate; empty: the whole room. */
  readonly files: readonly string[];
}

function partOf(name: string): Part {
  const room = ROOMS.find((r) => name === r || name.startsWith(`lib/stages/${r}/`));
  if (room === undefined || (name !== room && !existsSync(name))) {
    throw new Error(`${name}: expected a room (${ROOMS.join(', ')}) or a file of one, such as lib/stages/plan/fill.ts`);
  }
  return { room, files: name === room ? [] : [name] };
}

interface Score {
  readonly killed: number;
  readonly survived: number;
}

async function mutate({ room, files }: Part): Promise<Score> {
  const kept = `.cache/mutation/${room}`;
  const results = await new Stryker({
    // Tables of settings contain no decisions.
    mutate: files.length > 0 ? [...files] : [`lib/stages/${room}/**/*.ts`, '!**/policies.ts'],
    testFiles: ['unit', 'property'].map((kind) => `test/${kind}/stages/${room}/**/*.test.ts`),
    testRunner: 'in-process',
    concurrency: Number(values.concurrency),
    force: values.fresh,
    incrementalFile: `${kept}.json`,
    jsonReporter: { fileName: `${kept}-report.json` },
    htmlReporter: { fileName: `${kept}.html` },
  }).runMutationTest();
  // Results include other files of the room, from earlier runs.
  const wanted =
    files.length === 0 ? results : results.filter(({ fileName }) => files.includes(relative('.', fileName)));
  const count = (...of: readonly string[]): number => wanted.filter(({ status }) => of.includes(status)).length;
  return { killed: count('Killed', 'Timeout'), survived: count('Survived', 'NoCoverage') };
}

process.env['EBB_PROPERTY_PART'] ??= '0.1';

const parts = (positionals.length === 0 ? ROOMS : positionals).map(partOf);
const measured: Measured[] = [];
for (const part of parts) {
  const { killed, survived } = await mutate(part);
  const percent = (100 * killed) / (killed + survived);
  measured.push({
    what: `Mutants killed: ${part.files[0] ?? `lib/stages/${part.room}`}`,
    reach: `>= ${TARGET} %`,
    seen: `${percent.toFixed(1)} %, ${killed} of ${killed + survived}`,
    met: percent >= TARGET,
    command: `npm run mutation -- ${part.files[0] ?? part.room}`,
  });
}
for (const { what, seen } of measured) console.error(`${what}: ${seen}`);
if (values.json) printRecords(measured);
