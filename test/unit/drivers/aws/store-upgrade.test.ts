import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { decode, type Item } from '../../../../lib/drivers/aws/store/codec.ts';
import * as keys from '../../../../lib/drivers/aws/store/keys.ts';
import type { Key } from '../../../../lib/drivers/aws/store/keys.ts';
import { FIRST_VERSION, SCHEMA_VERSION } from '../../../../lib/drivers/aws/store/upgrades.ts';
import { recorded } from '../../../support/recorded-world.ts';
import { answersOf, compacted, opened, storedWorld, type StoredWorld } from '../../../support/stored-world.ts';

/**
 * What each of them wrote was recorded by `npm run record:store`; the present one's so that it does not change without
 * being raised.
 */
const RECORDED = Array.from({ length: SCHEMA_VERSION - FIRST_VERSION + 1 }, (_, i) => FIRST_VERSION + i);

describe('a table and a bucket of a version', () => {
  it.each(RECORDED)('answer as they did: version %i', async (version) => {
    const { world, answers } = await recorded(version);
    expect(await answered(world, answers)).toEqual(answers);
  });

  it.each(RECORDED)('answer so with the newest form written over the old one in part: version %i', async (version) => {
    const { world, answers } = await recorded(version);
    await compacted(opened(world).store);
    expect(new Set(world.table.items.map((item) => item['v']?.N))).toEqual(
      new Set([String(version), String(SCHEMA_VERSION)]),
    );
    expect(await answered(world, answers)).toEqual(answers);
  });

  it.each(RECORDED)(
    'have, brought up to date, the form of what is written now: no form is changed without a step, version %i',
    async (version) => {
      const { world } = await recorded(version);
      const present = formsOf(await storedWorld());
      const isRecorded = ([place]: readonly [string, unknown]): boolean =>
        (version >= MARKET_SINCE || !/^(PRICES|WINDOWS)/.test(place)) &&
        (version >= RESERVED_SINCE || !/^PRICES RESERVED/.test(place));
      expect(present.size).toBeGreaterThan(20);
      expect(Object.fromEntries(formsOf(world))).toEqual(Object.fromEntries([...present].filter(isRecorded)));
    },
  );
});

describe('what is recorded', () => {
  it('has every kind of item that holds a value, and none that keys.ts does not know', async () => {
    const world = await storedWorld();
    // Some are in the log alone until then.
    await compacted(opened(world).store);
    const there = new Set(world.table.items.map((item) => kindOf(keyOf(item))));
    const known = new Set(kindsMade());
    expect(known.size).toBeGreaterThan(25);
    expect([...there].filter((kind) => !known.has(kind))).toEqual([]);
    const isExpected = (kind: string): boolean => !WITHOUT_VALUES.has(kind) && !LATER_KINDS.has(kind);
    expect([...known].filter((kind) => !there.has(kind) && isExpected(kind))).toEqual([]);
  });

  it('is known by keys that are made in one place', () => {
    const makers = globSync('lib/drivers/aws/**/*.ts').filter((file) => /\bpk: ['`]/.test(readFileSync(file, 'utf8')));
    expect(makers.sort()).toEqual(['lib/drivers/aws/store/keys.ts', 'lib/drivers/aws/store/upgrades.ts']);
  });
});

/** From this version on recordings hold what the deployment keeps of the market. */
const MARKET_SINCE = 6;
/** And from this one on, what it keeps of reservations. */
const RESERVED_SINCE = 9;

/** Numbers, flags and names alone, which no step changes (upgrades.ts). */
const WITHOUT_VALUES: ReadonlySet<string> = new Set([
  'J# LEDGER#',
  'NEWS I#',
  'WAKE WAKE',
  'WAKE SERVICES',
  'TRAFFIC ',
  'SPENT ',
  'L# FLEET',
]);

/** New kinds that older code never reads: recorded when the version is raised next. */
const LATER_KINDS: ReadonlySet<string> = new Set(['SERVICES ']);

/** Fields of answers that recordings have had since version 7, 8, 9 and 10. */
const LATER_FIELDS = ['idleHours', 'caller', 'speculativeUsd', 'movedUsd'];

/** Answers of the world, as far as they were recorded. */
async function answered(world: StoredWorld, answers: unknown): Promise<unknown> {
  const all = (await answersOf(opened(world))) as Readonly<Record<string, unknown>>;
  const same = Object.fromEntries(Object.keys(answers as object).map((name) => [name, all[name]]));
  const text = JSON.stringify(answers);
  return without(new Set(LATER_FIELDS.filter((name) => !text.includes(`"${name}"`))), same);
}

function without(names: ReadonlySet<string>, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => without(names, each));
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, of]) => (names.has(name) ? [] : [[name, without(names, of)]])),
  );
}

const keyOf = (item: Item): Key => ({ pk: item['pk']?.S ?? '', sk: item['sk']?.S ?? '' });

/** Without what names the single job, instance, commit or day. */
function kindOf({ pk, sk }: Key): string {
  const kind = (text: string): string => /^[A-Z]+(?:#|$)/.exec(text)?.[0] ?? '';
  return `${kind(pk)} ${kind(sk)}`;
}

/** Of all that keys.ts makes. */
function kindsMade(): string[] {
  return Object.entries(keys).flatMap(([name, made]: readonly [string, unknown]) => {
    // Lies beside another, whose key it is given.
    if (name === 'spillKey') return [];
    if (typeof made === 'function' && name.endsWith('Key'))
      return [kindOf((made as (...parts: unknown[]) => Key)('a', 'b', 1))];
    return typeof made === 'object' && made !== null && 'pk' in made ? [kindOf(made as Key)] : [];
  });
}

/** The form of every value of the items, in objects too. The log holds the same values. */
function formsOf({ table, objects }: StoredWorld): ReadonlyMap<string, unknown> {
  const forms = new Map<string, unknown>();
  for (const item of table.items.filter((i) => i['pk']?.S !== keys.LOG)) {
    const { pk, sk } = keyOf(item);
    const inObject = item['s3']?.S === undefined ? undefined : objects.contents[`bucket/${item['s3'].S}`];
    const values = Object.entries(item).flatMap(([name, { B }]) => (B === undefined ? [] : [[name, B] as const]));
    for (const [attribute, bytes] of inObject === undefined ? values : [...values, ['b', inObject] as const]) {
      forms.set(`${pk} ${sk} ${attribute}`, formOf(decode<unknown>(bytes, { pk, sk, attribute })));
    }
  }
  return forms;
}

/** Names and types, without what they hold. */
function formOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(formOf);
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, formOf(of)]));
}
