/** The deployment's metrics as CDK constructs see them: for its own dashboard and alarms, and for yours. */
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

/** Reserved capacity is written where any is held. */
export const PURCHASE_OPTIONS: readonly PurchaseOption[] = ['spot', 'on-demand', 'reserved'];

/** A sum over those that are there. */
const SPEND = `SUM([${PURCHASE_OPTIONS.map((_, n) => `spend${n}`).join(', ')}])`;

/** How often the clock decides while there is work; a cycle in between only adds points. */
const PERIOD = Duration.minutes(5);

export class EbbtideMetrics {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /**
   * A metric as it is published. `option` is needed for those that are counted by purchase option, and for them only.
   */
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

  /** USD per hour of all that is held. */
  spendRate(props: cloudwatch.MetricOptions = {}): cloudwatch.MathExpression {
    return new cloudwatch.MathExpression({
      expression: SPEND,
      usingMetrics: this.#spendByOption(),
      label: 'USD per hour',
      period: props.period ?? PERIOD,
      ...(props.color === undefined ? {} : { color: props.color }),
    });
  }

  /** Share of the on-demand price that is not paid, percent. */
  savings(props: cloudwatch.MetricOptions = {}): cloudwatch.MathExpression {
    return new cloudwatch.MathExpression({
      expression: `100 * (demand - ${SPEND}) / demand`,
      usingMetrics: { demand: this.metric('onDemandRate'), ...this.#spendByOption() },
      label: 'saved against on-demand, %',
      period: props.period ?? PERIOD,
      ...(props.color === undefined ? {} : { color: props.color }),
    });
  }

  /** Of a number that is counted: all that came since the beginning of the time shown. */
  summed(key: MetricKey): cloudwatch.MathExpression {
    return new cloudwatch.MathExpression({
      // Names of metrics are of a whole graph.
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
