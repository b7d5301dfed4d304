import { alg, Graph } from '@dagrejs/graphlib';
import type { Finding } from './findings.ts';

interface Stage {
  readonly name: string;
  readonly dependsOn?: readonly string[] | undefined;
}

/** Faults in stage names and dependencies: repeated, missing, circular. O(stages + dependencies). */
export function dependencyFindings(stages: readonly Stage[]): Finding[] {
  const findings: Finding[] = [];
  const graph = new Graph({ directed: true });
  const names = new Set<string>();
  stages.forEach(({ name }, i) => {
    if (names.has(name)) {
      const message = `a stage of the name ${JSON.stringify(name)} is there already`;
      findings.push({ code: 'job-file.invalid', path: ['stages', i, 'name'], message });
    }
    names.add(name);
    graph.setNode(name);
  });
  stages.forEach(({ name, dependsOn = [] }, i) => {
    for (const before of dependsOn) {
      if (names.has(before)) graph.setEdge(name, before);
      else {
        const allowed = [...names].filter((n) => n !== name).join(', ');
        const message = `there is no stage ${JSON.stringify(before)}; the others are: ${allowed === '' ? 'none' : allowed}`;
        findings.push({ code: 'job-file.dependency', path: ['stages', i, 'dependsOn'], message });
      }
    }
  });
  for (const group of alg.findCycles(graph)) {
    const circle = circleIn(graph, group);
    const index = stages.findIndex((s) => s.name === circle[0]);
    const message = `stages depend on one another in a circle: ${circle.join(' -> ')}`;
    findings.push({ code: 'job-file.cycle', path: ['stages', index, 'dependsOn'], message });
  }
  return findings;
}

/** One circle among nodes that all reach one another: follow inner edges until a node repeats. */
function circleIn(graph: Graph, group: readonly string[]): string[] {
  const inside = new Set(group);
  const walk: string[] = [];
  let at = group.toSorted()[0] ?? '';
  while (!walk.includes(at)) {
    walk.push(at);
    at = (graph.successors(at) ?? []).find((n) => inside.has(n)) ?? at;
  }
  return [...walk.slice(walk.indexOf(at)), at];
}
