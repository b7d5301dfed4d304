import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { closeColumns, columnsIn, writeWhole } from '../../../lib/drivers/local/datasets/dataset-columns.ts';
import { writeCapacityDataset } from '../../../lib/drivers/local/datasets/capacity-dataset-folder.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import { traceOf } from '../../../lib/market/price-steps.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-dataset-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('writeWhole', () => {
  it('shows the folder only when its columns and the manifest are complete', async () => {
    const folder = join(dir, 'dataset');
    await writeWhole(folder, (partial) => {
      const columns = columnsIn(partial, { n: 'uint8' }, {});
      columns.n.push(7);
      expect(readdirSync(dir)).toEqual([`dataset.${process.pid}.partial`]);
      return { sha256: closeColumns(columns) };
    });
    expect(readdirSync(dir)).toEqual(['dataset']);
    expect(readdirSync(folder).sort()).toEqual(['manifest.json', 'n.npy']);
    expect(readFileSync(join(folder, 'n.npy')).at(-1)).toBe(7);
  });

  it('leaves nothing of what failed half-way', async () => {
    const folder = join(dir, 'dataset');
    const failing = (partial: string): never => {
      writeFileSync(join(partial, 'n.npy'), '');
      throw new Error('no space left');
    };
    await expect(writeWhole(folder, failing)).rejects.toThrow('no space left');
    expect(readdirSync(dir)).toEqual([]);
  });

  it('touches no folder that has something in it', async () => {
    const folder = join(dir, 'dataset');
    mkdirSync(folder);
    writeFileSync(join(folder, 'mine'), '');
    await expect(writeWhole(folder, () => ({}))).rejects.toThrow('not empty');
    expect(readdirSync(folder)).toEqual(['mine']);
  });
});

describe('a data set of capacity', () => {
  it('is not begun where no market has a series', async () => {
    const market = traceOf({ name: 'none', startMs: epochMs(0), endMs: epochMs(1) }, []);
    const plan = { seed: 1, instantsPerPool: 1, shares: { train: 0.6, validation: 0.2 }, unseenShare: 0 };
    await expect(writeCapacityDataset(join(dir, 'dataset'), [{ name: 'none', trace: market }], plan)).rejects.toThrow(
      'no market tells when there was capacity',
    );
    expect(readdirSync(dir)).toEqual([]);
  });
});
