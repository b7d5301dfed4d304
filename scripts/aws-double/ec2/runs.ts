import { z } from 'zod';
import { instanceId } from '../../../lib/kernel/ids.ts';
import { action, Tokens, type Actions } from '../api.ts';
import { hexOf } from '../events.ts';
import { AwsFault, NotPlayed } from '../fault.ts';
import type { Place } from '../place.ts';
import { form, tagSpecifications, type XmlValue } from '../query.ts';
import { shown } from './instances.ts';
import { isRefusal, RESERVATION_EXCEEDED, type Launches } from './launches.ts';
import type { Reservations } from './reservations.ts';
import { taggedBy, type Templates } from './templates.ts';

const target = z.strictObject({ CapacityReservationId: z.string() });
const runInstances = z.strictObject({
  DryRun: form.boolean.optional(),
  MinCount: form.number.min(1),
  MaxCount: form.number.min(1),
  ImageId: z.string().optional(),
  LaunchTemplate: z.strictObject({ LaunchTemplateId: z.string(), Version: z.string() }).optional(),
  TagSpecification: tagSpecifications,
  InstanceType: z.string(),
  SubnetId: z.string().optional(),
  InstanceMarketOptions: z.strictObject({ MarketType: z.literal('spot') }).optional(),
  MetadataOptions: z.strictObject({ HttpTokens: z.literal('required') }).optional(),
  CapacityReservationSpecification: z.strictObject({ CapacityReservationTarget: target }).optional(),
  ClientToken: z.string().max(64).optional(),
});
type RunInstances = z.infer<typeof runInstances>;
type Answer = { readonly [name: string]: XmlValue };

/**
 * RunInstances: dry runs, and single instances from a template into a capacity reservation. Other purchases use
 * CreateFleet. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html
 */
export class Runs {
  readonly #place: Place;
  readonly #of: {
    readonly templates: Templates;
    readonly launches: Launches;
    readonly reservations: Reservations;
  };
  readonly #tokens = new Tokens<Answer>();
  #runs = 0;

  constructor(
    place: Place,
    of: { readonly templates: Templates; readonly launches: Launches; readonly reservations: Reservations },
  ) {
    this.#place = place;
    this.#of = of;
  }

  readonly actions: Actions<Answer> = {
    RunInstances: action(runInstances, (asked) => {
      // Dry run: "the error response is DryRunOperation".
      if (asked.DryRun === true) {
        const message = 'Request would have succeeded, but DryRun flag is set.';
        throw new AwsFault('DryRunOperation', message, { status: 412 });
      }
      // Idempotence: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html. Failed calls bind no
      // token.
      return this.#tokens.once(asked.ClientToken, asked, {
        answer: () => this.#run(asked),
        mismatch: () => new AwsFault('IdempotentParameterMismatch', 'The client token was used with other parameters'),
      });
    }),
  };

  async #run(asked: RunInstances): Promise<Answer> {
    const { CapacityReservationSpecification: into, LaunchTemplate: named, SubnetId, MaxCount } = asked;
    if (into === undefined || named === undefined || MaxCount > 1) {
      throw new NotPlayed('InvalidParameterValue', 'the double runs single instances of a template in a reservation');
    }
    const { templates, launches, reservations } = this.#of;
    const template = templates.find({ id: named.LaunchTemplateId }, named.Version);
    const subnet = this.#place.subnets.find((s) => s.id === SubnetId);
    if (subnet === undefined) {
      throw new AwsFault('InvalidSubnetID.NotFound', `The subnet ID '${SubnetId ?? ''}' does not exist`);
    }
    const reservation = reservations.find(into.CapacityReservationTarget.CapacityReservationId);
    const { pool } = reservation;
    const fits = pool.type.name === asked.InstanceType && pool.zone === subnet.zone;
    if (!fits || reservations.room(reservation) === 0) throw faultOf(RESERVATION_EXCEEDED);
    const id = instanceId(`i-0${hexOf(`run/${this.#runs++}/${asked.ClientToken ?? ''}`, 16)}`);
    const got = await launches.launch({
      id,
      pool,
      bid: 'uncapped',
      lifecycle: 'on-demand',
      subnet,
      template,
      clientToken: asked.ClientToken,
      tags: taggedBy(template, asked.TagSpecification),
      reservationId: reservation.id,
    });
    if (isRefusal(got)) throw faultOf(got);
    return {
      reservationId: `r-${id.slice(2)}`,
      ownerId: this.#place.account,
      instancesSet: [shown(got, this.#place)],
    };
  }
}

const faultOf = ({ code, message }: { readonly code: string; readonly message: string }): AwsFault =>
  new AwsFault(code, message);
