import { describe, expect, it } from '@jest/globals';
import { Carrier } from '../../../../lib/drivers/aws/cycle/blobs.ts';
import { Blobs } from '../../../../lib/drivers/aws/store/blobs.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';

describe('what steps leave for one another', () => {
  const make = () => {
    const puts: string[] = [];
    const meter = ({ operation }: { operation: string }): void => void puts.push(operation);
    return {
      puts,
      carrier: new Carrier(new Blobs({ client: new ObjectsDouble().client(), bucket: 'bucket', meter }), 'test'),
    };
  };

  it('carries maps and typed arrays to the last bit, small ones without the bucket', async () => {
    const { carrier, puts } = make();
    const small = { curves: new Map([['a', Float64Array.of(0.1, Number.MIN_VALUE)]]), none: null, absent: undefined };
    const reference = await carrier.put(small, 'x/small');
    expect(puts).toEqual([]);
    expect(await carrier.get(reference)).toEqual(small);
  });

  it('puts a large value into the bucket, behind a reference of few bytes', async () => {
    const { carrier, puts } = make();
    const large = Float64Array.from({ length: 50_000 }, (_, i) => Math.sin(i));
    const reference = await carrier.put({ large }, 'execution/observation');
    expect(reference).toBe('s3:cycle/execution/observation');
    expect(puts).toEqual(['PutObject']);
    expect(await carrier.get(reference)).toEqual({ large });
  });

  it('says when a reference is none, or what it names is gone', async () => {
    const { carrier } = make();
    await expect(carrier.get('cycle/x')).rejects.toMatchObject({ code: 'internal' });
    await expect(carrier.get('s3:cycle/never')).rejects.toMatchObject({ code: 'not-found' });
  });

  it('refuses what other code wrote, another form of structured clone, and what does not say what wrote it', async () => {
    const { carrier } = make();
    const content = Buffer.from((await carrier.put({ a: 1 }, 'x/y')).slice('data:'.length), 'base64');
    const end = content.indexOf('\n');
    const refused = async (line: string): Promise<void> => {
      const other = Buffer.concat([Buffer.from(line), content.subarray(end)]);
      await expect(carrier.get(`data:${other.toString('base64')}`)).rejects.toMatchObject({ code: 'superseded' });
    };
    const writer = content.subarray(0, end).toString();
    expect(writer).toMatch(/^test schema \d+ clone \d+$/);
    await refused(writer.replace('test', 'tested'));
    await refused(writer.replace(/schema \d+/, 'schema 5'));
    await refused(writer.replace(/clone (\d+)/, (_, n: string) => `clone ${Number(n) + 1}`));
    const bare = content.subarray(end + 1).toString('base64');
    await expect(carrier.get(`data:${bare}`)).rejects.toMatchObject({ code: 'superseded' });
  });
});
