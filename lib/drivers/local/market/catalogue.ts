import { readFileSync } from 'node:fs';
import { EbbError, messageOf } from '../../../kernel/errors.ts';
import type { Arch } from '../../../domain/pool.ts';
import { builtInCatalogue, catalogueOf, type Catalogue, type TypeFacts } from '../../../market/catalogue.ts';

/**
 * A catalogue file (CSV with a header) laid over the built-in one: its types win, for all time; the others stay. Two
 * headers are understood: `instance_type,arch,vcpu,memory_mib,...,ondemand_linux_usd_hr_us_east_1` and
 * `instance_type,...,vcpu,...,memory_gib,gpu,local_storage,...,ondemand_linux_usd_hr_us-east-1,...`. Types without a
 * price are left to the built-in catalogue. Throws `market.invalid` naming the line.
 */
export async function catalogueFromFile(path: string): Promise<Catalogue> {
  const { parse } = await import('csv-parse/sync');
  const invalid = (what: string, got?: string): EbbError =>
    new EbbError('market.invalid', {
      what,
      at: path,
      allowed:
        'a CSV file with the columns instance_type, vcpu, memory_mib or memory_gib, ondemand_linux_usd_hr_us_east_1',
      ...(got === undefined ? {} : { got }),
    });
  let rows: Record<string, string>[];
  try {
    rows = parse(readFileSync(path), { bom: true, columns: true, skip_empty_lines: true, trim: true });
  } catch (error) {
    throw invalid('the catalogue file cannot be read', messageOf(error));
  }
  const facts = rows.flatMap((row, i) => factsOf(row, (what, got) => invalid(`line ${i + 2}: ${what}`, got)));
  if (facts.length === 0) throw invalid('the catalogue file holds no priced instance type');
  return catalogueOf(path, facts, builtInCatalogue());
}

function factsOf(
  row: Readonly<Record<string, string>>,
  invalid: (what: string, got: string) => EbbError,
): readonly TypeFacts[] {
  const name = row['instance_type'] ?? '';
  const price = row['ondemand_linux_usd_hr_us_east_1'] ?? row['ondemand_linux_usd_hr_us-east-1'] ?? '';
  if (price === '') return [];
  const number = (what: string, text: string | undefined): number => {
    const n = text === undefined || text === '' ? NaN : Number(text);
    if (!Number.isFinite(n) || n < 0) throw invalid(`${what} of ${name} is not a number`, text ?? 'nothing');
    return n;
  };
  /** An empty cell means none. */
  const countOrNone = (what: string, text: string | undefined): number =>
    text === undefined || text === '' ? 0 : number(what, text);
  const memoryMiB =
    row['memory_mib'] === undefined
      ? number('memory_gib', row['memory_gib']) * 1024
      : number('memory_mib', row['memory_mib']);
  return [
    {
      name,
      arch: (row['arch'] === 'arm64' ? 'arm64' : 'x86_64') satisfies Arch,
      vcpus: number('vcpu', row['vcpu']),
      memoryMiB: Math.round(memoryMiB),
      gpus: countOrNone('gpus', row['gpu_count'] ?? row['gpu']),
      localGb:
        row['local_nvme_gb'] === undefined
          ? storageGb(row['local_storage'] ?? '')
          : countOrNone('disk', row['local_nvme_gb']),
      usdPerHour: number('price', price),
    },
  ];
}

/** `2x80GB SSD` -> 160. */
function storageGb(text: string): number {
  const found = /^(\d+)x([\d.]+) ?GB/.exec(text);
  return found === null ? 0 : Math.round(Number(found[1]) * Number(found[2]));
}
