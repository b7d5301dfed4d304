/**
 * Rights of a user or role by IAM's simulation. It evaluates policies, the permission boundary and the organisation's
 * policies without doing anything. https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
 *
 * The question is about any resource (`*`). Policies that grant a right on some resources only, or under conditions,
 * give the answer "no". So a denied right is reported with these words. A right under an unknown condition is only a
 * note.
 */
import type { Issue } from '../../../kernel/errors.ts';
import { askQuery, textOf, wordsOf, type Caller } from './asking.ts';
import type { Findings } from './findings.ts';

export interface Asking {
  /** ARN of an IAM user or role. */
  readonly principal: string;
  /** Name of the principal in messages. */
  readonly who: string;
  readonly actions: readonly string[];
  /** Advice if rights are missing. */
  readonly fix: string;
}

/** Only region of IAM: conditions on the region see it, wherever the deployment is. */
const REGION_OF_IAM = 'us-east-1';
const MAX_PAGES = 10;

type Verdict = 'allowed' | 'denied' | 'organisation' | 'boundary' | 'not-given' | 'depends';

const SAID: Readonly<Record<Exclude<Verdict, 'allowed'>, string>> = {
  denied: 'a policy denies it',
  organisation: 'a policy of your organisation does not allow it',
  boundary: 'the permission boundary does not allow it',
  'not-given': 'no policy allows it on all resources',
  depends: 'it depends on conditions that are unknown before',
};

/** Adds missing rights. If IAM may not be asked, that is a note. */
export async function askRights(caller: Caller, asking: Asking, { failures, notes }: Findings): Promise<void> {
  const { principal, who, actions, fix } = asking;
  const verdicts = new Map<string, Verdict>();
  const ofIam = actions.filter((a) => a.startsWith('iam:'));
  const others = actions.filter((a) => !a.startsWith('iam:'));
  for (const [region, names] of [[REGION_OF_IAM, ofIam] as const, [caller.region, others] as const]) {
    if (names.length === 0) continue;
    const refused = await simulated(caller, { principal, names, region }, verdicts);
    if (refused === null) continue;
    const message = `its rights could not be asked (iam:SimulatePrincipalPolicy): ${refused}; CloudFormation reports missing rights during the deployment`;
    notes.push({ at: who, message });
    return;
  }
  for (const [verdict, names] of Map.groupBy(actions, (a) => verdicts.get(a) ?? 'depends')) {
    if (verdict === 'allowed') continue;
    const issue: Issue = { at: who, message: `lacks ${names.join(', ')}: ${SAID[verdict]}; ${fix}` };
    (verdict === 'depends' ? notes : failures).push(issue);
  }
}

/** Null, or the reason why nothing was answered. */
async function simulated(
  caller: Caller,
  of: { readonly principal: string; readonly names: readonly string[]; readonly region: string },
  verdicts: Map<string, Verdict>,
): Promise<string | null> {
  const form: Record<string, string> = {
    Action: 'SimulatePrincipalPolicy',
    Version: '2010-05-08',
    PolicySourceArn: of.principal,
    MaxItems: '1000',
    'ResourceArns.member.1': '*',
    'ContextEntries.member.1.ContextKeyName': 'aws:RequestedRegion',
    'ContextEntries.member.1.ContextKeyType': 'string',
    'ContextEntries.member.1.ContextKeyValues.member.1': of.region,
    ...Object.fromEntries(of.names.map((name, n) => [`ActionNames.member.${n + 1}`, name])),
  };
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const said = await askQuery(caller, 'iam', form);
    if (said.error !== null) return wordsOf(said);
    for (const result of resultsIn(said.text)) verdicts.set(textOf('EvalActionName', result) ?? '', verdictOf(result));
    if (textOf('IsTruncated', said.text) !== 'true') return null;
    form['Marker'] = textOf('Marker', said.text) ?? '';
  }
  return null;
}

/** Results, each without its inner lists but with the missing keys. */
const resultsIn = (xml: string): string[] =>
  xml
    .replace(/<(ResourceSpecificResults|MatchedStatements|EvalDecisionDetails)>.*?<\/\1>/gs, '')
    .replace(/<MissingContextValues>(.*?)<\/MissingContextValues>/gs, (_, keys: string) =>
      keys.includes('<member>') ? '<IsMissing>true</IsMissing>' : '',
    )
    .match(/<member>.*?<\/member>/gs) ?? [];

function verdictOf(result: string): Verdict {
  if (textOf('EvalDecision', result) === 'allowed') return 'allowed';
  if (textOf('IsMissing', result) === 'true') return 'depends';
  if (textOf('AllowedByOrganizations', result) === 'false') return 'organisation';
  if (textOf('EvalDecision', result) === 'explicitDeny') return 'denied';
  return textOf('AllowedByPermissionsBoundary', result) === 'false' ? 'boundary' : 'not-given';
}
