import { beforeEach, describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { Wake } from '../../../../lib/drivers/aws/cycle/wake.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';

const MINUTE_MS = 60_000;

describe('waking the cycle', () => {
  let nowMs = 0;
  let started: string[] = [];
  let isBroken = false;
  let table: Table;
  let processes = 0;

  /** Another Lambda on the same table; its clock is ahead by so much. */
  const another = (aheadMs = 0): Wake =>
    new Wake({
      table,
      nowMs: () => nowMs + aheadMs,
      random: randomStream(1, `wake/${++processes}`),
      start: async (execution) => {
        if (isBroken) throw new Error('no state machine');
        started.push(execution);
      },
    });

  /** The minute's clock ticks. */
  const tick = (aheadMs = 0): ReturnType<Wake['wakeIfDue']> => another(aheadMs).wakeIfDue(nowMs);

  beforeEach(() => {
    nowMs = 1_000_000;
    started = [];
    isBroken = false;
    table = new Table({ client: new DynamoDouble().client(), name: 'table' });
  });

  it('starts one execution however many want one at once', async () => {
    const answers = await Promise.all(Array.from({ length: 25 }, () => another().wake()));
    expect(answers.filter((a) => a === 'started')).toHaveLength(1);
    expect(started).toHaveLength(1);
  });

  it('serves what was wanted during a round by one more round, and ends when nothing was', async () => {
    const wake = another();
    await wake.wake();
    const [execution = ''] = started;
    const first = await wake.begin(execution);
    expect(first).toBe(1);
    expect(await another().wake()).toBe('coalesced');
    expect(await another().wake()).toBe('coalesced');
    expect(await wake.end(execution, { seen: first ?? 0, dueInMs: 60_000 })).toBe(true);
    const second = await wake.begin(execution);
    expect(second).toBe(3);
    expect(await wake.end(execution, { seen: second ?? 0, dueInMs: 60_000 })).toBe(false);
    expect(started).toHaveLength(1);
    expect(await another().wake()).toBe('started');
  });

  it('says whether a round is still to come that sees what was stored before', async () => {
    const wake = another();
    expect(await wake.isAwaited()).toBe(false);
    await wake.wake();
    expect(await another().isAwaited()).toBe(true);
    const [execution = ''] = started;
    // The snapshot has begun: later news may be missed.
    const seen = (await wake.begin(execution)) ?? 0;
    expect(await another().isAwaited()).toBe(false);
    await another().wake();
    expect(await another().isAwaited()).toBe(true);
    expect(await wake.end(execution, { seen, dueInMs: null })).toBe(true);
    const next = (await wake.begin(execution)) ?? 0;
    expect(await another().isAwaited()).toBe(false);
    expect(await wake.end(execution, { seen: next, dueInMs: null })).toBe(false);
    expect(await another().isAwaited()).toBe(false);
  });

  it('awaits no round that nobody is about to begin', async () => {
    const wake = another();
    // For the clock.
    await wake.want();
    expect(await wake.isAwaited()).toBe(false);
    isBroken = true;
    await expect(wake.wake()).rejects.toThrow('no state machine');
    expect(await wake.isAwaited()).toBe(false);
    isBroken = false;
    await wake.wake();
    const [execution = ''] = started;
    await wake.begin(execution);
    await another().wake();
    expect(await wake.isAwaited()).toBe(true);
    expect(await wake.gaveUp(execution)).toBe(true);
    expect(await wake.isAwaited()).toBe(false);
  });

  it('loses no trigger that races with the end', async () => {
    for (let round = 0; round < 15; round++) {
      const wake = another();
      const before = started.length;
      await wake.wake();
      const execution = started[before] ?? '';
      const seen = (await wake.begin(execution)) ?? 0;
      const [again, answer] = await Promise.all([wake.end(execution, { seen, dueInMs: null }), another().wake()]);
      // Either the execution goes on, or it had ended and another one was started.
      expect(again).toBe(answer === 'coalesced');
      expect(started.length - before).toBe(again ? 1 : 2);
      const last = started.at(-1) ?? '';
      const rest = await wake.begin(last);
      expect(await wake.end(last, { seen: rest ?? 0, dueInMs: null })).toBe(false);
    }
  });

  it('does nothing by the clock until something is due', async () => {
    const wake = another();
    expect(await tick()).toBe('idle');
    await wake.wake();
    const [execution = ''] = started;
    expect(await tick()).toBe('idle');
    const seen = (await wake.begin(execution)) ?? 0;
    await wake.end(execution, { seen, dueInMs: MINUTE_MS });
    nowMs += MINUTE_MS - 1;
    expect(await tick()).toBe('idle');
    nowMs += 1;
    expect(await tick()).toBe('started');
    const next = started[1] ?? '';
    await wake.end(next, { seen: (await wake.begin(next)) ?? 0, dueInMs: null });
    nowMs += 100 * MINUTE_MS;
    expect(await tick()).toBe('idle');
    expect(started).toHaveLength(2);
  });

  it('takes a silent execution for dead, and keeps it from going on', async () => {
    const wake = another();
    await wake.wake();
    const [dead = ''] = started;
    const seen = (await wake.begin(dead)) ?? 0;
    expect(await tick()).toBe('idle');
    nowMs += 5 * MINUTE_MS;
    expect(await tick()).toBe('idle');
    // Triggers do not judge: the clock will.
    nowMs += 1;
    expect(await another().wake()).toBe('coalesced');
    expect(await tick()).toBe('revived');
    expect(await wake.begin(dead)).toBeNull();
    expect(await wake.end(dead, { seen, dueInMs: null })).toBe(false);
    expect(await another().wake()).toBe('coalesced');
  });

  it('hears of an execution by each round that begins or ends, also while one tick decides', async () => {
    const wake = another();
    await wake.wake();
    const [execution = ''] = started;
    for (let n = 0; n < 4; n++) {
      await tick();
      nowMs += 4 * MINUTE_MS;
      const seen = (await wake.begin(execution)) ?? 0;
      await another().wake();
      expect(await wake.end(execution, { seen, dueInMs: null })).toBe(true);
      expect(await tick()).toBe('idle');
      nowMs += 4 * MINUTE_MS;
    }
    nowMs += 2 * MINUTE_MS;
    const judged = tick();
    // A round begins while the tick makes up its mind.
    const begun = wake.begin(execution);
    expect((await judged) === 'revived').toBe((await begun) === null);
    expect(started).toHaveLength((await begun) === null ? 2 : 1);
  });

  it('does not wait for one that says that it failed: the clock or the next trigger starts another', async () => {
    const wake = another();
    await wake.wake();
    const [failed = ''] = started;
    await wake.begin(failed);
    expect(await another().gaveUp(failed)).toBe(true);
    expect(await tick()).toBe('started');
    // Said twice, or too late: the other one keeps its place.
    expect(await another().gaveUp(failed)).toBe(false);
    expect(await another().wake()).toBe('coalesced');
    const next = started[1] ?? '';
    expect(await another().isIdle()).toBe(false);
    await wake.end(next, { seen: (await wake.begin(next)) ?? 0, dueInMs: MINUTE_MS });
    expect(await another().isIdle()).toBe(false);
    await wake.wake();
    const last = started[2] ?? '';
    await wake.begin(last);
    await another().gaveUp(last);
    expect(await another().wake()).toBe('started');
    const end = started[3] ?? '';
    await wake.end(end, { seen: (await wake.begin(end)) ?? 0, dueInMs: null });
    expect(await another().isIdle()).toBe(true);
  });

  it('says when it cannot start one, and the clock makes up for it', async () => {
    isBroken = true;
    await expect(another().wake()).rejects.toThrow('no state machine');
    isBroken = false;
    expect(await tick()).toBe('started');
    expect(started).toHaveLength(1);
  });

  it('lets another execution go on where one has run for long', async () => {
    const wake = another();
    await wake.wake();
    const [old = ''] = started;
    const seen = (await wake.begin(old)) ?? 0;
    await wake.handOver(old);
    expect(started).toHaveLength(2);
    expect(await wake.begin(old)).toBeNull();
    expect(await wake.begin(started[1] ?? '')).toBe(seen);
    await wake.handOver(old);
    expect(started).toHaveLength(2);
  });

  describe.each([10, -10].flatMap((of) => [10, 0, -10].map((by) => [of, by] as const)))(
    'with clocks that are wrong by %i and %i minutes',
    (ofCycle, ofOthers) => {
      const [cycleMs, otherMs] = [ofCycle * MINUTE_MS, ofOthers * MINUTE_MS];

      it('no execution loses its place while it goes on', async () => {
        const wake = another(cycleMs);
        await another(otherMs).wake();
        const [execution = ''] = started;
        for (let round = 0; round < 3; round++) {
          const seen = await wake.begin(execution);
          expect(seen).not.toBeNull();
          for (let n = 0; n < 4; n++) {
            nowMs += MINUTE_MS;
            expect(await tick(otherMs)).toBe('idle');
            expect(await another(otherMs).wake()).toBe('coalesced');
          }
          expect(await wake.end(execution, { seen: seen ?? 0, dueInMs: MINUTE_MS })).toBe(true);
        }
        expect(started).toEqual([execution]);
      });

      it('a dead one is found within minutes, and what was wanted of it is served', async () => {
        await another(cycleMs).wake();
        await another(cycleMs).begin(started[0] ?? '');
        const answers: string[] = [];
        for (let n = 0; n < 7; n++, nowMs += MINUTE_MS) answers.push(await tick(otherMs));
        expect(answers.filter((a) => a === 'revived')).toHaveLength(1);
        expect(await another(cycleMs).begin(started[1] ?? '')).toBe(1);
      });

      it('the next cycle is no later than a minute after it is due, whoever said when', async () => {
        await another(otherMs).wake();
        const cycle = another(cycleMs);
        const seen = (await cycle.begin(started[0] ?? '')) ?? 0;
        await cycle.end(started[0] ?? '', { seen, dueInMs: 3 * MINUTE_MS });
        nowMs += MINUTE_MS / 2;
        let minutes = 0;
        for (; (await tick(otherMs)) !== 'started'; nowMs += MINUTE_MS) minutes++;
        expect(minutes).toBeLessThanOrEqual(3);
      });

      it('a clock that goes back between two steps changes nothing', async () => {
        await another(otherMs).wake();
        const [execution = ''] = started;
        const seen = (await another(cycleMs).begin(execution)) ?? 0;
        await tick();
        expect(await another(-cycleMs).end(execution, { seen, dueInMs: null })).toBe(false);
        await another(-otherMs).wake();
        expect(started).toHaveLength(2);
        nowMs -= 10 * MINUTE_MS;
        expect(await tick(otherMs)).toBe('idle');
        expect(await another(cycleMs).begin(started[1] ?? '')).toBe(2);
      });
    },
  );
});
