import { compile, createContext, readAttributes } from "@halyard/evaluation";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { type Polling, percent, type Sample, sample, type Target } from "../http/beside-bare.ts";
import { captureAnswer } from "../http/capture-answer.ts";
import { type Load, numbered, type RequestPlan, startLoad } from "../http/load.ts";
import { startBaseline } from "../http/start-baseline.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { type Postgres, startPostgres } from "../system/backends.ts";
import { assertTargeted } from "../targeting/assert-targeted.ts";
import { startTargetedEdge } from "../targeting/targeted-edge.ts";
import { flagState, type TargetedFlag, targetedFlags } from "../targeting/targeted-flags.ts";
import { idOf, type User, userNamed } from "../targeting/users.ts";
import { contextHeader, plansOf, type Way } from "../targeting/ways-of-asking.ts";
import { peerVersion } from "./peers-package.ts";
import { startUnleash, type Unleash } from "./unleash-server.ts";

export const peersBenchmark: Benchmark = {
  name: "peers",
  pinned: true,
  withPeers: true,
  summary: "all flags for a new user in every request, vs. unleash-server's frontend API",
  method:
    "The same flags in `unleash-server` and on an edge, with a new user in every request. " +
    "unleash-server runs as documented for production (`NODE_ENV=production`, caches on, only errors logged) with its own PostgreSQL; rate limits, telemetry and version checks are off. " +
    "Each server in turn has a core to itself. Unleash returns only flags that are on, with a variant for each. " +
    "The benchmark verifies that both return the same values of all constant flags and rules.",
  run,
};

const sizes: readonly number[] = [100, 1_000];
const quickSizes: readonly number[] = [30];

async function run(bench: Bench): Promise<Outcome> {
  const postgres = await startPostgres(bench);
  const load = await startLoad(bench);
  const figures: Figure[] = [];
  const notes: string[] = [];
  let natsVersion = "";
  for (const flags of bench.quick ? quickSizes : sizes) {
    const measured = await beside(bench, { postgres, load, flags });
    natsVersion = measured.natsVersion;
    const size = `${flags.toLocaleString("en-US")} flags, `;
    figures.push(...figuresOf(measured.samples, size));
    notes.push(...[...notesOf(measured.samples), measured.sizesNote].map((note) => size + note));
  }
  return {
    figures,
    notes,
    servers: {
      "unleash-server": peerVersion("unleash-server"),
      PostgreSQL: postgres.version,
      NATS: natsVersion,
    },
  };
}

/** Measures all servers with a number of flags, and stops them. */
async function beside(
  bench: Bench,
  { postgres, load, flags }: { postgres: Postgres; load: Load; flags: number },
) {
  const targeted = targetedFlags(flags);
  bench.say(`unleash-server: its migrations, ${flags} flags and their strategies`);
  const unleash = await startUnleash(bench, { postgres, flags: targeted });
  const { edge, key, natsVersion } = await startTargetedEdge(bench, targeted);
  await assertTargeted(edge.url, { way: contextHeader, key, flags: targeted });
  const way = frontendApi(unleash);
  const answerBytes = await assertAgreement(unleash.url, way, targeted);

  const halyardPlans = plansOf(contextHeader, key);
  const first = numbered(halyardPlans[0] as RequestPlan, 0);
  const bare = await startBaseline(bench, edge.url, first, { bodyAs: "text" });
  bench.say(`${flags} flags: edge, unleash-server and bare node:http in turn`);
  const samples = await measure(bench, load, {
    halyard: { target: edge, plans: halyardPlans },
    unleash: { target: unleash, plans: plansOf(way, "") },
    bare: { target: bare, plans: halyardPlans },
  });
  const ourBytes = (await captureAnswer(edge.url, first)).body.length;
  await Promise.all([edge, unleash, bare].map(({ child }) => child.stop()));
  return {
    samples,
    natsVersion,
    sizesNote:
      `a response of Unleash has the flags that are on, with variants, in ` +
      `${number(answerBytes)} bytes on average; a response of the edge has the values of all flags in ` +
      `${number(ourBytes)} bytes.`,
  };
}

/** Sends the context in the query, as Unleash's browser SDKs do. */
function frontendApi({ frontendToken }: Unleash): Way {
  return {
    name: "frontend API",
    sends: "all",
    plan: ({ user_id, ...properties }) => {
      const query = [
        `userId=${user_id}`,
        ...Object.entries(properties).map(([name, value]) => `properties[${name}]=${value}`),
      ];
      return {
        method: "GET",
        path: `/api/frontend?${query.join("&")}`,
        headers: { Authorization: frontendToken },
      };
    },
  };
}

const checkedUsers = 60;

/**
 * Verifies that Unleash returns the same values, except for rollouts, which use another hash. Returns the
 * mean size of a response.
 */
async function assertAgreement(url: string, way: Way, targeted: readonly TargetedFlag[]) {
  const settled = targeted.filter(({ kind }) => kind !== "rollout");
  let bytes = 0;
  for (let user = 0; user < checkedUsers; user += 1) {
    const asking = userNamed(idOf(user), user);
    const { body } = await captureAnswer(url, way.plan(asking, ""));
    const { toggles } = JSON.parse(body.toString()) as { toggles: { name: string }[] };
    const on = new Set(toggles.map(({ name }) => name));
    for (const flag of settled)
      if (on.has(flag.key) !== isOn(flag, asking))
        throw new Error(`Unleash has a different value of ${flag.key} for user ${user}`);
    bytes += body.length;
  }
  return bytes / checkedUsers;
}

function isOn(flag: TargetedFlag, user: User): boolean {
  const read = readAttributes(user, "reject");
  if (!read.ok) throw new Error(`invalid user in the benchmark: ${read.problem.expected}`);
  return compile(flagState(flag)).evaluate(createContext(read.attributes)).value;
}

type Side = { target: Target; plans: readonly RequestPlan[] };
type Sides<T> = Record<"halyard" | "unleash" | "bare", T>;

async function measure(bench: Bench, load: Load, sides: Sides<Side>): Promise<Sides<Sample>> {
  const round = ({ target, plans }: Side, measureMs: number) => {
    const polling: Polling = { name: "", status: 200, plans };
    return () => sample(load, { target, polling, measureMs });
  };
  for (const side of Object.values(sides)) await round(side, bench.quick ? 50 : 3_000)();
  const measureMs = bench.quick ? 100 : 2_000;
  return alternate(bench.quick ? 1 : 5, {
    halyard: round(sides.halyard, measureMs),
    unleash: round(sides.unleash, measureMs),
    bare: round(sides.bare, measureMs),
  });
}

function figuresOf({ halyard, unleash, bare }: Sides<Sample>, size: string): Figure[] {
  const speed = (
    what: string,
    { perSecond: measured }: Sample,
    { perSecond: baseline }: Sample,
  ) => ({
    what: `${size}${what}: requests per second`,
    unit: "/s",
    measured,
    baseline,
  });
  const cpu = (
    what: string,
    { cpuMicroseconds: measured }: Sample,
    { cpuMicroseconds: baseline }: Sample,
  ) => ({ what: `${size}${what}: CPU per request`, unit: "µs", measured, baseline });
  return [
    speed("edge vs. unleash-server", halyard, unleash),
    speed("edge vs. node:http", halyard, bare),
    speed("unleash-server vs. node:http", unleash, bare),
    cpu("edge vs. unleash-server", halyard, unleash),
    cpu("edge vs. node:http", halyard, bare),
    cpu("unleash-server vs. node:http", unleash, bare),
  ];
}

function notesOf({ halyard, unleash, bare }: Sides<Sample>): string[] {
  const named = [
    { name: "edge", side: halyard },
    { name: "unleash-server", side: unleash },
    { name: "node:http", side: bare },
  ];
  return named.map(
    ({ name, side }) =>
      `${name} used ${percent(side.serverBusy)} of its core, the load generator ` +
      `${percent(side.generatorBusy)} of the other core, and other processes ${percent(side.othersBusy)}.`,
  );
}
