import { createHash } from 'node:crypto';

/** Characters of a service's part of a target group's name, which has 32 in all ("CreateTargetGroup"). */
const DIGITS = 7;

/** Name of a service's target group. `stack`: name of the deployment, at most 24 characters. */
export function groupName(stack: string, service: string): string {
  const digest = createHash('sha256').update(service).digest('hex');
  const digits = BigInt(`0x${digest}`).toString(36).slice(-DIGITS);
  return `${stack}-${digits.padStart(DIGITS, '0')}`;
}

/** True for names of this deployment's groups: those of a deployment `stack-x` are longer. */
export const isGroupOf = (stack: string, name: string): boolean =>
  name.startsWith(`${stack}-`) && name.length === stack.length + 1 + DIGITS;
