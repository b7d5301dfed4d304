import { expect, it } from '@jest/globals';
import { Carrier } from '../../../lib/aws/blobs.ts';
import { Blobs } from '../../../lib/aws/store/blobs.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';

describeOnLocalStack('what steps leave for one another', (on) => {
  const make = async () => {
    const { bucket } = await on.place();
    const puts: string[] = [];
    const meter = ({ operation }: { operation: string }): void => void puts.push(operation);
    return { puts, carrier: new Carrier(new Blobs({ client: on.s3(), bucket, meter })) };
  };

  it('carries maps and typed arrays to the last bit, small ones without the bucket', async () => {
    const { carrier, puts } = await make();
    const small = { curves: new Map([['a', Float64Array.of(0.1, Number.MIN_VALUE)]]), none: null, absent: undefined };
    const reference = await carrier.put(small, 'x/small');
    expect(puts).toEqual([]);
    expect(await carrier.get(reference)).toEqual(small);
  });

  it('puts a large value into the bucket, behind a reference of few bytes', async () => {
    const { carrier, puts } = await make();
    const large = Float64Array.from({ length: 50_000 }, (_, i) => Math.sin(i));
    const reference = await carrier.put({ large }, 'execution/sight');
    expect(reference).toBe('s3:cycle/execution/sight');
    expect(puts).toEqual(['PutObject']);
    expect(await carrier.get(reference)).toEqual({ large });
  });

  it('says when a reference is none, or what it names is gone', async () => {
    const { carrier } = await make();
    await expect(carrier.get('cycle/x')).rejects.toMatchObject({ code: 'internal' });
    await expect(carrier.get('s3:cycle/never')).rejects.toMatchObject({ code: 'not-found' });
  });
});
