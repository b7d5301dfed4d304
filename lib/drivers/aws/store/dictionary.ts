/**
 * Common text of most stored values, so that compression need not repeat it. Items are billed by the kilobyte: with it
 * a job with its task fits into one instead of two. **This text never changes** after its release; another text would
 * be a new encoding (codec.ts). Frequent text comes last, where deflate's distances are shortest.
 */
const observation = '{"kind":"attempt-progress","attempt":"","keptS":"instance-rebalance","attempt-started"';
const fleet =
  '{"instance":"i-","key":"p-","pool":"","bid":"uncapped","refused":null,"ec2":"i-0","launchedMs":17,"host":"arn:aws:ecs:us-east-1:' +
  ':container-instance/ebbtide/","readyMs":17,"rebalanceMs":null,"warnedMs":null,"goneMs":null,"isReleased":false,"endAskedMs":null,' +
  '"gone":null,"isEnded":false,"attempts":{"j-.main.0.1":{"triedMs":17,"refusals":0,"task":"arn:aws:ecs:us-east-1:task/ebbtide/",' +
  '"startedMs":17,"keptMs":null,"reportedKeptS":0,"stop":null,"isStopSent":false,"saves":false,"timeoutS":null}},"sequence":1,' +
  '"observations":[{"kind":"instance-launched","instance":"i-","sequence":1,"atMs":17},{"kind":"instance-ready",' +
  '{"kind":"attempt-ended","attempt":"j-","exitCode":0,"exitSignal":null,"outcome":"succeeded","usage":null';
const instance =
  '{"arrival":1,"instance":{"id":"i-","allocation":"p-","pool":"c5.large/us-east-1a/spot","bid":"uncapped","state":"requested",' +
  '"requestedMs":17,"launchedMs":null,"readyMs":null,"warnedMs":null,"goneMs":null,"rebalance":false,"endedMs":null,"endCause":' +
  '"released","costUsd":null},"cursor":null}"state":"starting""state":"releasing""state":"ready"';
const events =
  '[{"atMs":17,"type":"instance-requested","job":null,"text":"buying  at no more than  USD/h: ","data":{"instance":"i-","pool":"' +
  '{"atMs":17,"type":"attempt-succeeded","job":"j-","text":"main[0] ended with exit code 0","data":{"attempt":"j-"}}' +
  '{"atMs":17,"type":"job-succeeded","type":"attempt-running","text":"main[0] runs on i-' +
  '{"atMs":17,"type":"attempt-starting","job":"j-","text":"main[0] starts on i-","data":{"attempt":"j-.main.0.1","instance":"i-"}}' +
  '{"atMs":17,"type":"job-submitted","job":"j-","text":"job  submitted by : 1 task","data":{"class":"deadline","tasks":1}}]';
const effects =
  '[[1,{"key":"p-/start/j-.main.0.1","plan":"p-","atMs":17,"effect":{"kind":"start","key":"p-","attempt":"j-.main.0.1","task":' +
  '{"job":"j-","stage":"main","index":0},"instance":"i-","reason":"","kind":"launch","allocation":"","kind":"release","kind":"stop",' +
  '"why":"preempted"},"outcome":null}]]';
const spec =
  '"spec":{"name":"","owner":"","labels":{},"class":"deadline","deadline":{"afterS":3600},"value":{"onTimeUsd":null,' +
  '"worthlessAfterS":null},"after":[],"maxCostUsd":null,"stages":[{"name":"main","dependsOn":[],"tasks":1,"gang":false,"command":["sh",' +
  '"-c","python"],"env":{},"workdir":null,"inputs":[],"outputs":[],"resources":{"cpu":1000,"memory":1024,"gpus":0,"disk":0},' +
  '"retries":2,"timeoutS":null,"checkpoint":{"signal":"SIGUSR1","graceS":20,"everyS":null},"checkpoint":null,"expectedRuntimeS":600,' +
  '"constraints":{},"preferences":[]}]}';
const job =
  '{"job":{"id":"j-","template":"//","state":"pending","stateReason":null,"submittedMs":17,"deadlineMs":17,"startedMs":null,' +
  '"finishedMs":null,"stages":[{"name":"main","tasks":1,"nextFresh":1,"waiting":0,"running":0,"succeeded":1,"failed":0,"cancelled":0}],' +
  '"after":[],"admission":{"feasible":true,"notes":[]},"state":"running","state":"succeeded"}';
const runs =
  '"runs":{"tasks":{"0":{"job":"j-","stage":"main","index":0,"state":"succeeded","attempts":1,"failures":0,"keptS":0,"notBeforeMs":null}},' +
  '"attempts":[[1,{"job":"j-","stage":"main","index":0,"id":"j-.main.0.1","number":1,"instance":"i-","resources":{"cpu":1000,' +
  '"memory":1024,"gpus":0,"disk":0},"state":"ended","placedMs":17,"startedMs":17,"endedMs":17,"outcome":"succeeded","exitCode":0,' +
  '"exitSignal":null,"reason":null,"resumedFromS":0,"keptS":0,"usage":null,"state":"starting","state":"running","startedMs":null,' +
  '"endedMs":null,"outcome":null,"exitCode":null,"exitSignal":null,"reason":"","resumedFromS":0,"keptS":0,"usage":{"maxRss":1,' +
  '"cpuS":1}}]],"spills":0}';

const explanation =
  '"forecast":[{"pool":"c5.xlarge/us-east-1a/spot","bid":0.,"pWithinHour":0.00,"reason":"price: bid 0.00010 USD/h above the price, model ' +
  ', median of 7 day(s) of history; capacity: 0.010 interruptions per instance-hour from 20 h of evidence, prior included","drivers":' +
  '{"aboveUsd":0.0001,"lastAboveS":null,"knownS":604800,"range24hUsd":0.00}}]' +
  '{"plan":"p-","ordinal":1,"is":{"job":"j-","atMs":17,"headline":"0 of 1 tasks done, 1 running or starting, 0 waiting","waiting":[],' +
  '"placed":[{"stage":"main","tasks":1,"pool":"c5.xlarge/us-east-1a/spot","why":"runs on i- at 0.0400 USD/h (on-demand 0.1700), ' +
  'P(interrupted within an hour) 1.0 %"}],"excluded":[],"runtime":{"medianS":300,"p90S":300,"basis":"median of 48 earlier runs with the ' +
  'same owner and program: about 5 min, past error 0 % of the mean"}}}"expected runtime of the submitter""considered":[{"pool":"' +
  '/on-demand","bid":"uncapped","priceUsdPerHour":0.,"pInterrupted":0,"pLate":0,"expectedCostUsd":0.00,"verdict":"kept: is never ' +
  'interrupted,  % dearer in expectation"},{"pool":"","verdict":"kept as an alternative, same expected cost"},{"verdict":"best: lowest ' +
  'expected cost"},"not kept: another bid in this pool is better, same expected cost"},{"pool":"c5.4xlarge/us-east-1a/spot","bid":0.' +
  '"priceUsdPerHour":0.,"pInterrupted":0.00,"pLate":0,"expectedCostUsd":0.00,"verdict":"';

export const DICTIONARY = Buffer.from(
  [explanation, observation, fleet, instance, events, effects, spec, job, runs].join(''),
);
