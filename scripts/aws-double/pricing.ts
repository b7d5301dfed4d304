import { z } from 'zod';
import type { Pool } from '../../lib/domain/pool.ts';
import { raw } from '../../lib/kernel/units.ts';
import { action, type Actions } from './api.ts';
import { AwsFault, NotPlayed } from './fault.ts';
import { nowMs, type Place } from './place.ts';
import { page } from './query.ts';

/**
 * On-demand prices of instances in AWS's price list: one product per type of the market.
 * https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
 */
const products = z.strictObject({
  ServiceCode: z.string(),
  FormatVersion: z.literal('aws_v1').optional(),
  Filters: z
    .array(z.strictObject({ Type: z.literal('TERM_MATCH'), Field: z.string(), Value: z.string() }))
    .max(50)
    .default([]),
  MaxResults: z.int().min(1).max(100).default(100),
  NextToken: z.string().optional(),
});

export const priceListActions = (place: Place): Actions<object> => ({
  GetProducts: action(products, (asked) => productsShown(place, asked)),
});

function productsShown(place: Place, asked: z.infer<typeof products>): object {
  if (asked.ServiceCode !== 'AmazonEC2') throw new NotPlayed('NotFoundException', 'The double sells AmazonEC2 only');
  const types = new Map(place.pools.map((pool) => [pool.type.name, pool]));
  const all = [...types.values()].map((pool) => ({ pool, attributes: attributesOf(pool, place.region) }));
  const wanted = all.filter(({ attributes }) =>
    asked.Filters.every(({ Field, Value }) => {
      const has = (attributes as Record<string, string>)[Field];
      if (has === undefined) throw new AwsFault('InvalidParameterException', `The double has no field ${Field}`);
      return has === Value;
    }),
  );
  const { items, nextToken } = page(wanted, { token: asked.NextToken, size: asked.MaxResults });
  return {
    FormatVersion: 'aws_v1',
    // Products as text, not as nested JSON.
    PriceList: items.map(({ pool, attributes }) => JSON.stringify(productOf(pool, attributes, nowMs(place)))),
    NextToken: nextToken,
  };
}

const attributesOf = (pool: Pool, region: string) => ({
  servicecode: 'AmazonEC2',
  instanceType: pool.type.name,
  regionCode: region,
  operatingSystem: 'Linux',
  tenancy: 'Shared',
  preInstalledSw: 'NA',
  capacitystatus: 'Used',
  marketoption: 'OnDemand',
  vcpu: String(raw(pool.type.capacity.cpu) / 1000),
});

/**
 * Product as in
 * https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file-for-services.html
 */
function productOf(pool: Pool, attributes: ReturnType<typeof attributesOf>, atMs: number): object {
  const sku = Buffer.from(pool.type.name).toString('hex').toUpperCase();
  const term = `${sku}.JRTCKXETXF`;
  const rate = `${term}.6YS6EN2CT7`;
  return {
    product: { productFamily: 'Compute Instance', attributes, sku },
    serviceCode: 'AmazonEC2',
    terms: {
      OnDemand: {
        [term]: {
          sku,
          offerTermCode: 'JRTCKXETXF',
          effectiveDate: new Date(atMs).toISOString(),
          termAttributes: {},
          priceDimensions: {
            [rate]: {
              rateCode: rate,
              unit: 'Hrs',
              beginRange: '0',
              endRange: 'Inf',
              description: `$${raw(pool.onDemandUsdPerHour)} per On Demand Linux ${pool.type.name} Instance Hour`,
              appliesTo: [],
              pricePerUnit: { USD: raw(pool.onDemandUsdPerHour).toFixed(10) },
            },
          },
        },
      },
    },
    version: '20260101000000',
    publicationDate: new Date(atMs).toISOString(),
  };
}
