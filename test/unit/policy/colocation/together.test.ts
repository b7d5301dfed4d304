import { describe, expect, it } from '@jest/globals';
import { Endings, type Ending } from '../../../../lib/policy/colocation/together.ts';

const ending = (name: string, startedMs: number, endedMs: number): Ending => ({
  template: `t/${name}`,
  part: 0.25,
  startedMs,
  endedMs,
});

describe('neighbours that ended meanwhile', () => {
  it('count for the part of the time that they were there', () => {
    const endings = new Endings();
    endings.add('i', ending('before', 0, 100), 0);
    endings.add('i', ending('early', 50, 150), 0);
    endings.add('i', ending('inside', 120, 170), 0);
    endings.add('elsewhere', ending('other', 100, 190), 0);
    const found = endings.during('i', { startedMs: 100, endedMs: 200 });
    expect(found).toEqual([
      { template: 't/early', part: 0.25, time: 0.5, isLater: false },
      { template: 't/inside', part: 0.25, time: 0.5, isLater: true },
    ]);
  });

  it('are not those that end with it, which are told with it', () => {
    const endings = new Endings();
    endings.add('i', ending('twin', 100, 200), 0);
    expect(endings.during('i', { startedMs: 100, endedMs: 200 })).toEqual([]);
  });

  it('are forgotten once nothing runs that was beside them', () => {
    const endings = new Endings();
    endings.add('i', ending('first', 0, 100), 50);
    endings.add('i', ending('second', 0, 150), 120);
    expect(endings.of('i').map((e) => e.template)).toEqual(['t/second']);
    endings.add('i', ending('last', 120, 300), Infinity);
    expect(endings.of('i')).toEqual([]);
    expect(endings.forget('i')).toBe(false);
  });

  it('are the last 16 of an instance, of the last 10,000 instances', () => {
    const endings = new Endings();
    for (let n = 0; n < 40; n++) endings.add('i', ending(`e${n}`, 0, n + 1), 0);
    expect(endings.of('i')).toHaveLength(16);
    expect(endings.of('i')[0]?.template).toBe('t/e24');
    let forgotten: string | null = null;
    for (let n = 0; n < 10_000; n++) forgotten = endings.add(`i${n}`, ending('e', 0, 1), 0) ?? forgotten;
    expect(forgotten).toBe('i');
    expect(endings.forget('i')).toBe(false);
    expect(endings.forget('i1')).toBe(true);
  });
});
