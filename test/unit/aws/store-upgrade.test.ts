import { describe, expect, it } from '@jest/globals';
import { FIRST_VERSION, SCHEMA_VERSION } from '../../../lib/aws/store/upgrades.ts';
import { recorded } from '../../support/recorded-world.ts';
import { answersOf, carriedOver, opened, storedWorld } from '../../support/stored-world.ts';

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

  it('are what the present version writes but for what it has changed since', async () => {
    const present = await storedWorld();
    const keysOf = ({ table }: typeof present): string[] =>
      table.items.map((item) => `${item['pk']?.S} ${item['sk']?.S}`).filter((key) => !key.startsWith('LOG'));
    const { world } = await recorded(SCHEMA_VERSION - 1);
    expect(keysOf(present).sort()).toEqual(keysOf(world).sort());
  });
});
