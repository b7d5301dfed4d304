import { describe, expect, it, jest } from '@jest/globals';
import { NEW } from '../../../../lib/drivers/aws/store/keys.ts';
import type { Place } from '../../../../lib/drivers/aws/store/upgrades.ts';
import * as present from '../../../../lib/drivers/aws/store/upgrades.ts';
import { job } from '../../../contract/store-samples.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import type { StoredWorld } from '../../../support/stored-world.ts';

const NEXT = present.SCHEMA_VERSION + 1;
const seen: { readonly at: Place; readonly version: number }[] = [];

/**
 * The store as it would be with one more step: pools of instances get another name, and all that is read of others is
 * noted.
 */
jest.unstable_mockModule('../../../../lib/drivers/aws/store/upgrades.ts', () => ({
  ...present,
  SCHEMA_VERSION: NEXT,
  upgraded(value: unknown, at: Place, version: number): unknown {
    if (version === NEXT) return value;
    seen.push({ at, version });
    const now = present.upgraded(value, at, version) as { readonly instance?: { readonly pool: string } };
    if (at.sk === 'runtimes|large|') return { ...now, value: 'another' };
    return at.sk === 'INSTANCE' ? { ...now, instance: { ...now.instance, pool: `${now.instance?.pool}!` } } : now;
  },
}));
const { recorded } = await import('../../../support/recorded-world.ts');
const { answersOf, compacted, opened } = await import('../../../support/stored-world.ts');

interface Answers {
  readonly memory: readonly (readonly [string, string])[];
  readonly instances: { readonly items: readonly { readonly id: string; readonly pool: string }[] };
}

/** Kinds of places, without what names the single job, instance or commit. */
const kindOf = ({ pk, sk, attribute }: Place): string => {
  const kind = (key: string): string => (key.includes('#') ? `${key.split('#')[0]}#` : key);
  return /^[A-Z]#/.test(pk) ? `${kind(pk)} ${kind(sk)} ${attribute}` : `${kind(pk)} ${attribute}`;
};

describe('a step of the schema', () => {
  it('is taken once by every value of the earlier version: in items, in objects and in the log', async () => {
    const { world } = await recorded(present.FIRST_VERSION);
    const pools = async (): Promise<readonly (readonly [string, string])[]> => {
      const { instances } = (await answersOf(opened(world))) as Answers;
      return instances.items.map(({ id, pool }) => [id, pool] as const);
    };
    const before = await pools();
    expect(before.map(([id]) => id).sort()).toEqual(['i-1', 'i-2', 'i-3', 'i-4']);
    expect(new Set(before.map(([, pool]) => pool))).toEqual(new Set(['c5.large/us-east-1a/spot!']));
    await compacted(opened(world).store);
    expect(await pools()).toEqual(before);
    // In the bucket.
    expect(new Map(((await answersOf(opened(world))) as Answers).memory).get('runtimes|large')).toBe('another');
  });

  it.each([present.FIRST_VERSION, present.SCHEMA_VERSION])('is offered all there is: version %i', async (version) => {
    const { world } = await recorded(version);
    seen.length = 0;
    await whatAKeySays(world);
    await answersOf(opened(world));
    await compacted(opened(world).store);
    expect(new Set(seen.map((s) => s.version))).toEqual(new Set([version]));
    const ofTheMarket = ['PRICES b', 'PRICES# b', 'WINDOWS b'];
    const since = version === present.FIRST_VERSION ? [] : ofTheMarket;
    expect([...new Set(seen.map(({ at }) => kindOf(at)))].sort()).toEqual([
      'A# ATTEMPT b',
      'A# ORDER b',
      'ACTIVE b',
      'COSTS b',
      'EFFECTS b',
      'EVENTS b',
      'EXPLAINED b',
      'I# FLEET b',
      'I# INSTANCE b',
      'I# LEDGER# b',
      'I# RUN# b',
      'J# JOB j',
      'J# JOB o',
      'J# JOB y',
      'J# RUN# b',
      'J# SPEC b',
      'J# WHY b',
      'JOBS b',
      'K# KEY b',
      'MEMORY b',
      'NEW b',
      'P# PLAN b',
      ...since,
    ]);
  });
});

/** Of a submission that died after it had written its key: the next one under that key reads what it was about. */
async function whatAKeySays({ table, objects }: StoredWorld): Promise<void> {
  const { store } = opened({ table: DynamoDouble.of(table.items.filter((i) => i['pk']?.S !== NEW)), objects });
  const again = [job('j4'), job('j6')].map((value, i) => ({
    job: value,
    idempotency: i === 0 ? { key: 'key-j4', digest: 'd' } : null,
  }));
  expect(await store.submit(again)).toMatchObject([{ status: 'created' }, { status: 'created' }]);
}
