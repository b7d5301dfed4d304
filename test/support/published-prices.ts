import type { DescribeSpotPriceHistoryCommandInput, EC2Client, SpotPrice } from '@aws-sdk/client-ec2';
import { indexAt } from '../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';

/**
 * EC2's DescribeSpotPriceHistory over a market: changes within the time asked for, newest first, and the price in force
 * at its start, as far as they are published; so many in one answer.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
 */
export function publishedPrices(trace: MarketTrace, isPublished: (atMs: number) => boolean, page = 1000): EC2Client {
  const answer = (input: DescribeSpotPriceHistoryCommandInput): object => {
    const [from, to] = [input.StartTime?.getTime() ?? 0, input.EndTime?.getTime() ?? Infinity];
    if (from > to) throw new Error('InvalidParameterValue: the end time is before the start time');
    const zones = input.Filters?.find((f) => f.Name === 'availability-zone')?.Values ?? [];
    const all = trace.pools
      .filter((p) => p.option === 'spot' && zones.includes(p.zone) && isAsked(input, p.type.name))
      .flatMap((pool): SpotPrice[] => {
        const { atMs, usdPerHour } = trace.prices(pool.id);
        const known = [...atMs].map((at, i) => ({ at, usd: usdPerHour[i] ?? 0 })).filter(({ at }) => isPublished(at));
        const first = indexAt(
          Float64Array.from(known, ({ at }) => at),
          from,
        );
        return known
          .slice(Math.max(0, first))
          .filter(({ at }) => at <= to)
          .map(({ at, usd }) => ({
            InstanceType: pool.type.name as NonNullable<SpotPrice['InstanceType']>,
            AvailabilityZone: pool.zone,
            SpotPrice: usd.toFixed(6),
            Timestamp: new Date(at),
          }));
      });
    all.sort((a, b) => (b.Timestamp?.getTime() ?? 0) - (a.Timestamp?.getTime() ?? 0));
    const begin = Number(input.NextToken ?? 0);
    const isMore = begin + page < all.length;
    return { SpotPriceHistory: all.slice(begin, begin + page), NextToken: isMore ? String(begin + page) : '' };
  };
  const send = async (command: { readonly input: DescribeSpotPriceHistoryCommandInput }) => answer(command.input);
  return { send, destroy: () => undefined } as unknown as EC2Client;
}

const isAsked = ({ InstanceTypes = [] }: DescribeSpotPriceHistoryCommandInput, name: string): boolean =>
  (InstanceTypes as readonly string[]).includes(name);
