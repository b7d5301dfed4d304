/** The controller of services as a function: when it makes another round, and when it leaves that to the clock. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { handler } from '../../../../lambdas/serve/handler.ts';
import type { Round } from '../../../../lib/cycle/services/controller.ts';
import { provideServing } from '../../../../lib/drivers/aws/compose/serving.ts';
import { Wake } from '../../../../lib/drivers/aws/cycle/wake.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { SERVICE_WAKE } from '../../../../lib/drivers/aws/store/keys.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { invoke } from './lambda.ts';

const START_MS = 1_700_000_000_000;
const SETTLED: Round = { services: 1, isChanging: false };
const CHANGING: Round = { services: 1, isChanging: true };
const NONE: Round = { services: 0, isChanging: false };

describe('the controller of services', () => {
  let nowMs: number;
  let leftMs: number;
  let rounds = 0;
  let started: string[];
  let wake: Wake;

  /** What each round finds, the last one for good. `during`: happens within a round. */
  function finds(all: readonly Round[], during: (round: number) => Promise<void> = async () => undefined): void {
    provideServing({
      controller: {
        round: async () => {
          await during(rounds);
          const found = all[Math.min(rounds, all.length - 1)] ?? NONE;
          rounds += 1;
          return found;
        },
      },
      wake,
      remainingMs: () => leftMs,
      pause: async (ms) => {
        nowMs += ms;
        leftMs -= ms;
      },
    });
  }
  const run = async (): Promise<void> => {
    await wake.wake();
    await invoke(handler, { execution: started.at(-1) });
  };

  beforeEach(() => {
    jest.spyOn(process.stdout, 'write').mockImplementation(() => true);
    [nowMs, leftMs, rounds, started] = [START_MS, 900_000, 0, []];
    wake = new Wake({
      table: new Table({ client: new DynamoDouble().client(), name: 'table' }),
      key: SERVICE_WAKE,
      nowMs: () => nowMs,
      random: randomStream(1, 'serve'),
      start: async (execution) => void started.push(execution),
    });
  });
  afterEach(() => {
    provideServing(null);
    jest.restoreAllMocks();
  });

  it('makes one round where nothing changes, and the clock starts the next one after a minute', async () => {
    finds([SETTLED]);
    await run();
    expect(rounds).toBe(1);
    expect(await wake.wakeIfDue(nowMs + 30_000)).toBe('idle');
    expect(await wake.wakeIfDue(nowMs + 60_000)).toBe('started');
  });

  it('goes on while replicas change', async () => {
    finds([CHANGING, CHANGING, CHANGING, SETTLED]);
    await run();
    expect(rounds).toBe(4);
    expect(nowMs - START_MS).toBe(9000);
  });

  it('is not started again where there is no service', async () => {
    finds([NONE]);
    await run();
    expect(await wake.isIdle()).toBe(true);
    expect(await wake.wakeIfDue(nowMs + 3_600_000)).toBe('idle');
  });

  it('makes another round for what comes while it looks, and nobody else starts meanwhile', async () => {
    finds([SETTLED], async (round) => {
      if (round === 0) expect(await wake.wake()).toBe('coalesced');
    });
    await run();
    expect([rounds, started.length]).toEqual([2, 1]);
  });

  it('leaves what still changes to the next execution before its time is over', async () => {
    finds([CHANGING]);
    await run();
    expect(leftMs).toBeGreaterThan(0);
    expect(await wake.wakeIfDue(nowMs + 1)).toBe('started');
    expect(started).toHaveLength(2);
  });

  it('frees its place where a round fails, so that the clock starts another one', async () => {
    finds([SETTLED], async () => Promise.reject(new Error('no table')));
    await expect(run()).rejects.toThrow('no table');
    expect(await wake.wakeIfDue(nowMs + 60_000)).toBe('started');
  });

  it('does nothing where another execution has its place', async () => {
    finds([SETTLED]);
    await wake.wake();
    await invoke(handler, { execution: 'c-another' });
    expect(rounds).toBe(0);
  });
});
