import { describe, expect, it } from '@jest/globals';
import { decode } from '../../../lib/aws/store/codec.ts';
import { LOG } from '../../../lib/aws/store/keys.ts';
import { FIRST_VERSION, SCHEMA_VERSION } from '../../../lib/aws/store/upgrades.ts';
import { recorded } from '../../support/recorded-world.ts';
import { answersOf, carriedOver, opened, storedWorld, type StoredWorld } from '../../support/stored-world.ts';

/** What each of them wrote was recorded by `npm run record:store` before the schema was raised. */
const EARLIER = Array.from({ length: SCHEMA_VERSION - FIRST_VERSION }, (_, i) => FIRST_VERSION + i);

describe('a table and a bucket of an earlier version', () => {
  it.each(EARLIER)('answer as they did: version %i', async (version) => {
    const { world, answers } = await recorded(version);
    expect(await answersOf(opened(world))).toEqual(answers);
  });

  it.each(EARLIER)('answer so with the newest form written over the old one in part: version %i', async (version) => {
    const { world, answers } = await recorded(version);
    await carriedOver(opened(world).store);
    expect(new Set(world.table.items.map((item) => item['v']?.N))).toEqual(
      new Set([String(version), String(SCHEMA_VERSION)]),
    );
    expect(await answersOf(opened(world))).toEqual(answers);
  });

  it('have, brought up to date, the form of what the present version writes: no form is changed without a step', async () => {
    const { world } = await recorded(SCHEMA_VERSION - 1);
    const present = await storedWorld();
    expect(formsOf(present).size).toBeGreaterThan(20);
    expect(Object.fromEntries(formsOf(world))).toEqual(Object.fromEntries(formsOf(present)));
  });
});

/** The form of every value of the items, in objects too. The log holds the same values. */
function formsOf({ table, objects }: StoredWorld): ReadonlyMap<string, unknown> {
  const forms = new Map<string, unknown>();
  for (const item of table.items.filter((i) => i['pk']?.S !== LOG)) {
    const [pk = '', sk = ''] = [item['pk']?.S, item['sk']?.S];
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
