/** A job file with most keys: shown in the reference page, parsed by tests. */
export const COMPLETE_EXAMPLE = `# Yesterday's satellite scenes: cut, analyse in parallel, join.
name: scenes-2026-11-21
owner: ana@example.org
labels:
  team: sea
class: deadline
deadline: 6h # or a time with its zone: 2026-11-21T18:00:00+01:00
value:
  onTime: 40 # US dollars
  worthlessAfter: 2h
after: download-scenes
maxCost: 25

# Keys of a stage that stand here are defaults for every stage.
workdir: scenes
env:
  GDAL_CACHEMAX: 512
retries: 2

stages:
  - name: cut
    command: ./cut.sh
    inputs: raw/*.tif
    outputs: tiles/**
    resources: { cpu: 2, memory: 4GiB, disk: 50GB }
    timeout: 1h30m

  - name: analyse
    dependsOn: cut
    tasks: 200
    command: [python3, analyse.py, --tile, '{index}']
    outputs: results/{index}.json
    resources: { cpu: 500m, memory: 1500MiB }
    expectedRuntime: 20m
    checkpoint:
      signal: SIGUSR1
      grace: 30s
      every: 5m
    constraints:
      arch: [x86_64]
      families: [c5*, m5*]
    preferences:
      - prefer: { purchaseOptions: spot, zones: us-east-1a }
        weight: 0.1

  - name: join
    dependsOn: [analyse]
    command: ./join.sh
    resources: { cpu: 4, memory: 16GiB }
    constraints:
      purchaseOptions: [on-demand]
`;
