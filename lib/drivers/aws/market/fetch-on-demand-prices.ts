/**
 * Fetch of on-demand prices from AWS's price list, once a day; stored as in on-demand-prices.ts.
 * https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-the-aws-price-list-query-api.html
 */
import { GetProductsCommand, type PricingClient } from '@aws-sdk/client-pricing';
import { z } from 'zod';
import { EbbError } from '../../../kernel/errors.ts';
import { raw, type EpochMs } from '../../../kernel/units.ts';
import { familyOf } from '../../../domain/pool.ts';
import { classify } from '../errors.ts';
import { readListPrices, sourceOf, type ListPrices, type ListSource } from './on-demand-prices.ts';
import { body, number, numberOf } from '../store/codec.ts';
import { PRICE_LIST, PRICES_STATE } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';

const DAY_MS = 86_400_000;
/** Pause after a failure, ms. */
const AGAIN_MS = 3_600_000;
/** Pages of a hundred products. A region sells some thousand instance types, with one matching product each. */
const MAX_PAGES = 40;

/** Region of the API for a region's prices. Three regions answer for all ("Endpoints", AWS Price List). */
export function priceListRegion(region: string): string {
  if (region.startsWith('cn-')) return 'cn-northwest-1';
  if (/^(?:eu|il|me|af)-/.test(region)) return 'eu-central-1';
  return region.startsWith('ap-') ? 'ap-south-1' : 'us-east-1';
}

/** Used part of a product, which is JSON in a string. */
const product = z.object({
  product: z.object({ attributes: z.object({ instanceType: z.string(), regionCode: z.string() }) }),
  terms: z.object({
    OnDemand: z.record(
      z.string(),
      z.object({
        priceDimensions: z.record(
          z.string(),
          z.object({ unit: z.string(), pricePerUnit: z.object({ USD: z.string().optional() }) }),
        ),
      }),
    ),
  }),
});

export interface PriceListParts {
  readonly client: PricingClient;
  readonly table: Table;
  /** Region of the deployment. */
  readonly region: string;
  readonly types: readonly string[];
}

/** Fetches the list if due; null if not. Faults of the list are not thrown: the catalogue serves in its place. */
export async function refreshListPrices(parts: PriceListParts, now: EpochMs): Promise<ListSource | null> {
  const { table, region, types } = parts;
  const [state, stored] = await Promise.all([table.get(PRICES_STATE), readListPrices(table)]);
  const isSame = stored?.region === region && types.every((type) => Object.hasOwn(stored.usdPerHour, type));
  const dueMs = numberOf(state, 'listDueMs');
  // New families are fetched at once. A family that the list lacks must not be fetched every ten minutes.
  if (raw(now) < dueMs && (isSame || familiesText(types) === state?.['listOf']?.S)) return null;
  const asked = { listOf: { S: familiesText(types) } };
  let usdPerHour: Record<string, number>;
  try {
    usdPerHour = await productsOf(parts);
  } catch (error) {
    const fault = classify(error, 'pricing GetProducts');
    await table.write({ key: PRICES_STATE, set: { ...asked, listDueMs: number(raw(now) + AGAIN_MS) } });
    const why = fault.message;
    return stored === null ? { source: 'catalogue', region: 'us-east-1', why } : sourceOf(stored, types);
  }
  const list: ListPrices = { region, usdPerHour };
  await table.write({ key: PRICE_LIST, set: { b: body(list) } });
  await table.write({
    key: PRICES_STATE,
    set: { ...asked, listedMs: number(raw(now)), listDueMs: number(raw(now) + DAY_MS) },
  });
  return sourceOf(list, types);
}

const familiesText = (types: readonly string[]): string => [...new Set(types.map(familyOf))].join();

/** Filter of products comparable with spot instances: Linux, shared hardware, nothing installed, not reserved. */
const KIND = {
  operatingSystem: 'Linux',
  tenancy: 'Shared',
  preInstalledSw: 'NA',
  capacitystatus: 'Used',
  marketoption: 'OnDemand',
};

/** Prices of the wanted types. Only one page is in memory at a time. */
async function productsOf({ client, region, types }: PriceListParts): Promise<Record<string, number>> {
  const wanted = new Set(types);
  const found: Record<string, number> = {};
  const fields = Object.entries({ ...KIND, regionCode: region });
  let token: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const answer = await client.send(
      new GetProductsCommand({
        ServiceCode: 'AmazonEC2',
        FormatVersion: 'aws_v1',
        MaxResults: 100,
        Filters: fields.map(([Field, Value]) => ({ Type: 'TERM_MATCH', Field, Value })),
        ...(token === undefined ? {} : { NextToken: token }),
      }),
    );
    for (const text of answer.PriceList ?? []) {
      const { type, usd } = priceIn(String(text), region) ?? {};
      if (type === undefined || usd === undefined || !wanted.has(type)) continue;
      found[type] = Math.min(usd, found[type] ?? Infinity);
    }
    token = answer.NextToken;
    if (token === undefined || token === '') break;
  }
  if (Object.keys(found).length > 0) return found;
  throw new EbbError('aws.unavailable', {
    what: 'the price list has none of the instance types',
    got: `${region}: ${familiesText(types)}`,
  });
}

/** Type and price of a product; null for an unknown form, since AWS may change the list. */
function priceIn(text: string, region: string): { readonly type: string; readonly usd: number } | null {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return null;
  }
  const parsed = product.safeParse(json);
  if (!parsed.success) return null;
  const { instanceType: type, regionCode } = parsed.data.product.attributes;
  const prices = Object.values(parsed.data.terms.OnDemand)
    .flatMap((term) => Object.values(term.priceDimensions))
    .filter(({ unit }) => unit === 'Hrs')
    .map(({ pricePerUnit }) => Number(pricePerUnit.USD))
    .filter((usd) => usd > 0 && Number.isFinite(usd));
  return regionCode === region && prices.length > 0 ? { type, usd: Math.min(...prices) } : null;
}
