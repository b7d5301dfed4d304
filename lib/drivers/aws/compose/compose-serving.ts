import { setTimeout as pause } from 'node:timers/promises';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { ElasticLoadBalancingV2Client } from '@aws-sdk/client-elastic-load-balancing-v2';
import { Controller } from '../../../cycle/services/controller.ts';
import { EbbError, messageOf } from '../../../kernel/errors.ts';
import { scalingNamed } from '../../../stages/services/scalings.ts';
import { placedInS3 } from '../fleet/job-files.ts';
import { logger } from '../lambda/stack.ts';
import { remainingMs } from '../lambda/remaining.ts';
import { AwsTraffic } from '../traffic/aws-traffic.ts';
import { LoadBalancer } from '../traffic/load-balancer.ts';
import { ReplicaPlaces } from '../traffic/replica-places.ts';
import { CLIENT, uniform, wallMs } from './compose-store.ts';
import { processParts } from './compose.ts';
import type { Serving } from './serving.ts';

/** Throws `usage` where the deployment has no services. */
export function composeServing(): Serving {
  const of = processParts();
  const { EBB_REGION: region, EBB_CONFIG: config, EBB_CLOCK: anchor, EBB_BUCKET: bucket } = of.environment;
  const { EBB_LOAD_BALANCER: arn, EBB_VPC: vpcId, EBB_CERTIFICATE: certificate = null } = of.environment;
  const addresses = of.addresses();
  const serviceWake = of.serviceWake();
  if (arn === undefined || vpcId === undefined || addresses === null || serviceWake === null) throw notOn();
  const at = { ...CLIENT, region };
  const stack = config.name;
  const speed = anchor?.speed ?? 1;
  const { inbox, ecs } = of.fleet();
  const traffic = new AwsTraffic({
    balancer: new LoadBalancer({ client: new ElasticLoadBalancingV2Client(at), arn, vpcId, stack, certificate }),
    arn,
    stack,
    places: new ReplicaPlaces(inbox, ecs),
    addresses,
    cloudWatch: new CloudWatchClient(at),
    clock: of.clock,
    speed,
    nowMs: wallMs,
  });
  const controller = new Controller({
    store: of.store(),
    traffic,
    clock: of.clock,
    speed,
    // The network of a container is its own: from outside only this reaches it.
    host: '0.0.0.0',
    random: uniform,
    scaling: scalingNamed,
    place: async (spec, id) => placedInS3(spec, bucket, id).spec,
    wake: async () => void (await of.wake().wake()),
    onFault: (service, error) => logger.warn('a service', { service, fault: messageOf(error) }),
  });
  return { controller, wake: serviceWake, remainingMs, pause: (ms) => pause(ms) };
}

const notOn = (): EbbError =>
  new EbbError('usage', {
    what: 'services are not turned on in this deployment',
    next: 'set `services` in ebbtide.config.yaml and deploy again',
  });
