/** Most that instances of EC2 transfer, where nothing was measured. */
import type { MostTransfers } from '../domain/load.ts';
import { vcpusIn } from '../kernel/units.ts';
import type { InstanceType } from '../domain/pool.ts';

const MB = 1e6;
const MIB = 1_048_576;

/**
 * Bandwidth to EBS per vCPU that is there all the time: 650 Mbit/s of a `large` to 4,750 Mbit/s of a `4xlarge` (m5, c5,
 * r5), 1,250 to 5,000 of `xlarge` to `4xlarge` (m6i, c6i, c7i). Amazon EC2 User Guide, "EBS-optimized instance types".
 */
const EBS_PER_VCPU = (300 / 8) * MB;
/** Throughput of a gp3 volume of any size, as it comes. Amazon EBS User Guide, "General Purpose SSD volumes". */
const VOLUME = 125 * MIB;
/**
 * Network bandwidth per vCPU that is there all the time: 0.75 Gbit/s of an m5.large, 1.25 of an `xlarge`, 5 of a
 * `4xlarge`. Amazon EC2 User Guide, "Network bandwidth".
 */
const NETWORK_PER_VCPU = (312.5 / 8) * MB;

/**
 * By the number of vCPUs, with one volume, as instances are launched here (lib/infra/cluster.ts). Bursts of small types
 * are left out, and so are faster networks of single families.
 */
export const transfersOf = ({ capacity }: InstanceType): MostTransfers => transfersOfVcpus(vcpusIn(capacity.cpu));

export function transfersOfVcpus(vcpus: number): MostTransfers {
  const disk = Math.min(VOLUME, EBS_PER_VCPU * vcpus);
  const net = NETWORK_PER_VCPU * vcpus;
  return { diskRead: disk, diskWritten: disk, netReceived: net, netSent: net };
}
