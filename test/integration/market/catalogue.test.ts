import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { builtInCatalogue, EBS_VOLUME_GIB, TODAY } from '../../../lib/market/catalogue.ts';
import { catalogueFromFile } from '../../../lib/drivers/local/market/catalogue.ts';

const data = join(process.env['EBB_DATA_DIR'] ?? join(import.meta.dirname, '../../../../shared/data'), 'ec2-catalogue');
const present = existsSync(data);
if (!present) console.warn(`skipped: no ${data} (set EBB_DATA_DIR)`);

/** Plain split: these files quote nothing. Shares no code with the reader under test. */
function rows(file: string): Record<string, string>[] {
  const [header = '', ...lines] = readFileSync(file, 'utf8').trim().split('\n');
  const names = header.trim().split(',');
  return lines.map((line) =>
    Object.fromEntries(
      line
        .trim()
        .split(',')
        .map((cell, i) => [names[i] ?? '', cell]),
    ),
  );
}

(present ? describe : describe.skip)('built-in catalogue against published ones', () => {
  const folder = join(data, 'ec2instances_info_2015_2017');
  const files = present ? readdirSync(folder).filter((f) => f.endsWith('.csv')) : ['absent'];

  it.each(files)('agrees with %s', (file) => {
    const date = /\d{4}-\d{2}-\d{2}/.exec(file)?.[0] ?? '';
    const known = rows(join(folder, file)).filter((r) => r['ondemand_linux_usd_hr_us-east-1'] !== '');
    const wrong = known.flatMap((r) => {
      const entry = builtInCatalogue().entry(r['instance_type'] ?? '', epochMs(Date.parse(date)));
      const want = [r['instance_type'], Number(r['vcpu']), Number(r['ondemand_linux_usd_hr_us-east-1'])];
      const got = [
        entry?.type.name,
        entry === null ? 0 : raw(entry.type.capacity.cpu) / 1000,
        entry === null ? 0 : raw(entry.onDemandUsdPerHour),
      ];
      return JSON.stringify(want) === JSON.stringify(got) ? [] : [{ want, got }];
    });
    expect(known.length).toBeGreaterThan(50);
    expect(wrong).toEqual(
      KNOWN_ERRORS.filter(({ want }) =>
        known.some((r) => r['instance_type'] === want[0] && Number(r['vcpu']) === want[1]),
      ),
    );
  });

  it('agrees with the types of 2026', () => {
    const wrong = rows(join(data, 'karpenter_us-east-1_2026-07/instances.csv')).flatMap((r) => {
      const entry = builtInCatalogue().entry(r['instance_type'] ?? '', TODAY);
      // The table leaves out families that hardly anyone can rent (metal-only memory giants, HPC), and types without a
      // price.
      if (entry === null || r['ondemand_linux_usd_hr_us_east_1'] === '') return [];
      const { cpu, memory, gpus } = entry.type.capacity;
      const want = [
        Number(r['vcpu']),
        Number(r['memory_mib']),
        Number(r['gpu_count']),
        Number(r['ondemand_linux_usd_hr_us_east_1']),
      ];
      const got = [raw(cpu) / 1000, raw(memory), gpus, raw(entry.onDemandUsdPerHour)];
      const near = got.every((x, i) => Math.abs(x - (want[i] ?? 0)) <= (i === 1 ? 1 : 1e-9));
      return near && (entry.type.arch === 'arm64') === (r['arch'] === 'arm64')
        ? []
        : [{ type: r['instance_type'], want, got }];
    });
    expect(wrong).toEqual([]);
  });

  it('knows every type of the price traces', () => {
    for (const year of [2015, 2016, 2021]) {
      expect(TRACE_TYPES[year]?.filter((type) => builtInCatalogue().entry(type, TODAY) === null)).toEqual([]);
    }
  });

  it('reads both kinds of catalogue file, laid over the built-in one', async () => {
    const old = await catalogueFromFile(join(folder, 'instances_2016-04-18.csv'));
    const entry = old.entry('m3.xlarge', TODAY);
    expect(raw(entry?.onDemandUsdPerHour ?? epochMs(0))).toBe(0.266);
    expect(raw(entry?.type.capacity.disk ?? epochMs(0))).toBe(EBS_VOLUME_GIB * 1024 + Math.floor(80e9 / 1048576));
    expect(old.entry('c7g.large', TODAY)?.type.arch).toBe('arm64');
    const now = await catalogueFromFile(join(data, 'karpenter_us-east-1_2026-07/instances.csv'));
    expect(raw(now.entry('u7in-32tb.224xlarge', TODAY)?.type.capacity.cpu ?? epochMs(0))).toBe(896_000);
  });
});

/** Where the old catalogues themselves err. */
const KNOWN_ERRORS: readonly { want: readonly unknown[]; got: readonly unknown[] }[] = [
  // 17 in the snapshot of 2015, 16 in the later ones and in AWS's own description.
  { want: ['hs1.8xlarge', 17, 4.6], got: ['hs1.8xlarge', 16, 4.6] },
];

const TRACE_TYPES: Record<number, readonly string[]> = {
  2015: 'c3.xlarge d2.8xlarge g2.2xlarge m3.medium r3.large'.split(' '),
  2016: 'c1.medium c1.xlarge cg1.4xlarge cr1.8xlarge d2.xlarge g2.8xlarge hi1.4xlarge m1.small m2.xlarge m4.10xlarge t1.micro'.split(
    ' ',
  ),
  2021: 'a1.metal c5n.18xlarge f1.4xlarge g3s.xlarge h1.16xlarge i3.metal inf1.24xlarge p2.16xlarge p3.16xlarge p3dn.24xlarge x1e.32xlarge z1d.metal'.split(
    ' ',
  ),
};
