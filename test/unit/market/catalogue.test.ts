import { describe, expect, it } from '@jest/globals';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { builtInCatalogue, familyFacts, TODAY } from '../../../lib/market/catalogue.ts';

const at = (iso: string) => epochMs(Date.parse(iso));
const price = (type: string, iso: string): number | null => {
  const entry = builtInCatalogue().entry(type, at(iso));
  return entry === null ? null : raw(entry.onDemandUsdPerHour);
};

describe('built-in catalogue', () => {
  it('reads sizes with every kind of override', () => {
    expect(familyFacts('x9 arm 2 0.05 large+75 metal:64~100@2.5*3+900')).toEqual([
      { name: 'x9.large', arch: 'arm64', vcpus: 2, memoryMiB: 4096, gpus: 0, localGb: 75, usdPerHour: 0.1 },
      { name: 'x9.metal', arch: 'arm64', vcpus: 64, memoryMiB: 102400, gpus: 3, localGb: 900, usdPerHour: 2.5 },
    ]);
  });

  it('gives prices of the time', () => {
    expect(['2015-08-02', '2016-04-18', '2017-03-10', '2017-08-07'].map((t) => price('m4.xlarge', t))).toEqual([
      0.252, 0.239, 0.215, 0.2,
    ]);
    expect(price('r3.large', '2015-12-31T23:59:59Z')).toBe(0.175);
    expect(price('r3.large', '2016-01-01')).toBe(0.166);
  });

  it('describes a type', () => {
    const entry = builtInCatalogue().entry('c6gd.xlarge', TODAY);
    expect(entry?.type).toMatchObject({ family: 'c6gd', generation: 6, arch: 'arm64' });
    expect(raw(entry?.type.capacity.cpu ?? epochMs(0))).toBe(4000);
    expect(raw(entry?.type.capacity.memory ?? epochMs(0))).toBe(8192);
  });

  it('does not know what does not exist', () => {
    expect(builtInCatalogue().entry('c5.huge', TODAY)).toBeNull();
  });

  it('holds only sound types', () => {
    const types = builtInCatalogue().types();
    expect(types.length).toBeGreaterThan(900);
    const unsound = types.filter((type) => {
      const entry = builtInCatalogue().entry(type, TODAY);
      if (entry === null) return true;
      const { cpu, memory } = entry.type.capacity;
      return !(
        raw(cpu) >= 1000 &&
        raw(memory) >= 500 &&
        raw(entry.onDemandUsdPerHour) > 0 &&
        entry.type.generation > 0
      );
    });
    expect(unsound).toEqual([]);
  });
});
