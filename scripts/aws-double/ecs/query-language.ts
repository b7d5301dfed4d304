import { NotPlayed } from '../fault.ts';
import type { ContainerInstance } from './container-instance.ts';

/**
 * Used part of the cluster query language: comparisons of one subject, joined by `and`.
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cluster-query-language.html
 */
export function selects(expression: string, instance: ContainerInstance): boolean {
  return expression.split(/\s+and\s+|\s*&&\s*/).every((clause) => holds(clause.trim(), instance));
}

const CLAUSE =
  /^(?<subject>[\w:.-]+)\s*(?:(?<operator>==|equals|!=|not_equals)\s*(?<value>[^\s[\],]+)|(?<not>not_|!)?in\s*\[(?<list>[^\]]*)\])$/;

function holds(clause: string, instance: ContainerInstance): boolean {
  const parts = CLAUSE.exec(clause)?.groups;
  if (parts === undefined)
    throw new NotPlayed('InvalidParameterException', `The double does not know the expression ${clause}`);
  const actual = valueOf(parts['subject'] ?? '', instance);
  if (parts['list'] !== undefined) {
    const among = parts['list'].split(',').map((value) => value.trim());
    return among.includes(actual ?? '') !== (parts['not'] !== undefined);
  }
  const isEqual = actual === parts['value'];
  return parts['operator'] === '==' || parts['operator'] === 'equals' ? isEqual : !isEqual;
}

function valueOf(subject: string, instance: ContainerInstance): string | undefined {
  if (subject.startsWith('attribute:')) return instance.attributes.get(subject.slice('attribute:'.length));
  if (subject === 'ec2InstanceId') return instance.host.id;
  if (subject === 'agentConnected') return String(instance.agentConnected);
  throw new NotPlayed('InvalidParameterException', `The double does not know the subject ${subject}`);
}
