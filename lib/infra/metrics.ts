/** Metrics of the deployment as CDK constructs, for its own dashboard and alarms and for yours. */
import { Duration } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import {
  METRICS,
  METRIC_NAMESPACE,
  SERVICE_DIMENSION,
  type MetricFacts,
  type MetricKey,
} from '../drivers/aws/metrics/metrics.ts';
import type { PurchaseOption } from '../domain/pool.ts';

/** Purchase options. Metrics of `reserved` exist only while some is held. */
export const PURCHASE_OPTIONS: readonly PurchaseOption[] = ['spot', 'on-demand', 'reserved'];

/** Sum over the metrics that have data. */
const SPEND = `SUM([${PURCHASE_OPTIONS.map((_, n) => `spend${n}`).join(', ')}])`;

/** Period of graphs. The clock decides at least as often while there is work; cycles in between only add points. */
const PERIOD = Duration.minutes(5);

export class EbbtideMetrics {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** Published metric. `option` is required for metrics by purchase option, and refused for others. */
  metric(
    key: MetricKey,
    props: cloudwatch.MetricOptions & { readonly option?: PurchaseOption } = {},
  ): cloudwatch.Metric {
    const { option, ...rest } = props;
    const { name, by, about }: MetricFacts = METRICS[key];
    return new cloudwatch.Metric({
      namespace: METRIC_NAMESPACE,
      metricName: name,
      dimensionsMap: {
        [SERVICE_DIMENSION]: this.#name,
        ...(by === undefined || option === undefined ? {} : { [by]: option }),
      },
      statistic: cloudwatch.Stats.AVERAGE,
      period: PERIOD,
      label: option ?? about,
      ...rest,
    });
  }

  /** USD per hour of all held instances. */
  spendRate(props: cloudwatch.MetricOptions = {}): cloudwatch.MathExpression {
    return new cloudwatch.MathExpression({
      expression: SPEND,
      usingMetrics: this.#spendByOption(),
      label: 'USD per hour',
      period: props.period ?? PERIOD,
      ...(props.color === undefined ? {} : { color: props.color }),
    });
  }

  /** Share of the on-demand price that is saved, percent. */
  savings(props: cloudwatch.MetricOptions = {}): cloudwatch.MathExpression {
    return new cloudwatch.MathExpression({
      expression: `100 * (demand - ${SPEND}) / demand`,
      usingMetrics: { demand: this.metric('onDemandRate'), ...this.#spendByOption() },
      label: 'saved against on-demand, %',
      period: props.period ?? PERIOD,
      ...(props.color === undefined ? {} : { color: props.color }),
    });
  }

  /** Running total of a counter over the shown time. */
  summed(key: MetricKey): cloudwatch.MathExpression {
    return new cloudwatch.MathExpression({
      // Names of metrics must be unique within a graph.
      expression: `RUNNING_SUM(FILL(${key}, 0))`,
      usingMetrics: { [key]: this.metric(key, { statistic: cloudwatch.Stats.SUM }) },
      label: METRICS[key].about,
      period: PERIOD,
    });
  }

  #spendByOption(): Record<string, cloudwatch.IMetric> {
    return Object.fromEntries(PURCHASE_OPTIONS.map((option, n) => [`spend${n}`, this.metric('spendRate', { option })]));
  }
}
