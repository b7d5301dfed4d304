import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { lambdaClock } from './clock.ts';
import { processParts, type Parts } from './compose.ts';
import { classify } from './errors.ts';
import { noticeOf, type FleetEvent } from './fleet/events.ts';
import { sweep, type SweepParts } from './fleet/sweep.ts';
import type { Observing } from './observing.ts';
import { fetchPrices } from './prices.ts';

/** Times the longest start-up that is planned for, after which an instance is taken to never come up. */
const START_PATIENCE = 5;

export function composeObserving(): Observing {
  const of = processParts();
  const { EBB_TRIGGER_QUEUE: queue, EBB_REGION: region, EBB_CLOCK: anchor, EBB_CONFIG: config } = of.environment;
  const clock = lambdaClock(anchor);
  const sqs = new SQSClient({ region });
  return {
    observe: (event) => observeEvent(of.fleet(), event),
    sweep: () => sweep(sweepParts(of, config.settings.startDelayMaxS * START_PATIENCE)),
    fetchPrices: () => fetchPrices(of.feed(), clock.now()),
    wake: () => trigger(sqs, queue, 'observed'),
  };
}

/** False when the event was about nothing of ours, or told nothing new. */
export async function observeEvent(
  { watch, inbox }: Pick<ReturnType<Parts['fleet']>, 'watch' | 'inbox'>,
  event: FleetEvent,
): Promise<boolean> {
  const notice = noticeOf(event);
  if (notice === null) return false;
  let isNews = false;
  const stop = inbox.onNews(() => {
    isNews = true;
  });
  try {
    await watch.notice(notice);
  } finally {
    stop();
  }
  return isNews;
}

function sweepParts(of: Parts, startPatienceS: number): SweepParts {
  const { inbox, ec2, ecs, hosts, watch } = of.fleet();
  return {
    inbox,
    ec2,
    ecs,
    hosts,
    watch,
    store: of.store(),
    clock: lambdaClock(of.environment.EBB_CLOCK),
    startPatienceS,
  };
}

/** Says through the queue that there is something to do. */
export async function trigger(client: SQSClient, queue: string, why: string): Promise<void> {
  try {
    await client.send(new SendMessageCommand({ QueueUrl: queue, MessageBody: JSON.stringify({ why }) }));
  } catch (error) {
    throw classify(error, 'sqs SendMessage');
  }
}
