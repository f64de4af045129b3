import type { Bench, Benchmark } from "../benchmark.ts";
import { startBaseline } from "../http/beside-bare.ts";
import { type Load, pollInTurn, type Sample, startLoad } from "../http/load.ts";
import { captureAnswer } from "../http/raw-connection.ts";
import { numbered, type RequestPlan } from "../http/requests.ts";
import { count, number, percent } from "../reporting.ts";
import { type Postgres, startPostgres } from "../system/backends.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { assertTargeted } from "../targeting/assert-targeted.ts";
import { contentOf, targetedFlags } from "../targeting/targeted-flags.ts";
import { contextHeader, plansOf } from "../targeting/ways-of-asking.ts";
import { assertFrontendApi, frontendApi } from "./frontend-api.ts";
import { peerVersion } from "./peers-package.ts";
import { compareTypedValues } from "./typed-values.ts";
import { startUnleash } from "./unleash-server.ts";

export const peersBenchmark: Benchmark = {
  name: "peers",
  pinned: true,
  withPeers: true,
  summary:
    "all flags for a new user in every request, vs. Unleash's servers, GO Feature Flag and flagd's evaluator",
  method: [
    "The same flags in `unleash-server` and on an edge, with a new user in every request. unleash-server runs as documented for production (`NODE_ENV=production`, caches on, only errors logged) with its own PostgreSQL; rate limits, telemetry and version checks are off. Each server in turn has a core to itself. Unleash returns only flags that are on, with a variant for each. The benchmark verifies that both return the same values of all constant flags and rules.",
    "The rows with OFREP compare its bulk evaluation on an edge with other servers. A third of the flags each are constant, rules with two conditions, and texts: one of two for the half of the users that is in a rollout, and a third one for the others. Each server hashes users in its own way, so the benchmark verifies the values of constant flags and rules, and the shares of the texts. Go and Cargo build the servers from their registries, with pinned sources; without these tools the rows are missing, and a note says so.",
    "[Unleash Edge](https://docs.getunleash.io/unleash-edge/deploy) runs in the mode `edge` with one worker, and logs only errors. It does not serve OFREP; the requests are those of its frontend API, which returns the variants of the flags that are on. unleash-server, its upstream, is almost idle on the other core. GO Feature Flag is its [relay proxy](https://gofeatureflag.org/docs/relay-proxy/configure-relay-proxy) with the defaults, a file of flags, and the log level `ERROR`. Its rules are in JsonLogic, the faster of its two documented languages, and it requires no API keys. flagd's own server is not in the registry of Go. A small `net/http` server in `bench/peers/flagd` serves flagd's evaluator instead: it parses the request, evaluates all flags and writes the response as flagd does, without its metrics, traces and logs.",
  ].join("\n\n"),
  run,
};

const sizes: readonly number[] = [100, 1_000];
const quickSizes: readonly number[] = [30];

async function run(bench: Bench): Promise<void> {
  bench.version("unleash-server", peerVersion("unleash-server"));
  const postgres = await startPostgres(bench);
  const load = await startLoad(bench);
  for (const flags of bench.quick ? quickSizes : sizes)
    await compare(bench, { postgres, load, flags });
  await compareTypedValues(bench, { postgres, load });
}

async function compare(
  bench: Bench,
  { postgres, load, flags }: { postgres: Postgres; load: Load; flags: number },
): Promise<void> {
  const targeted = targetedFlags(flags);
  bench.say(`unleash-server: its migrations, ${flags} flags and their strategies`);
  const unleash = await startUnleash(bench, { postgres, flags: targeted, core: "server" });
  const { edge, key } = await startSnapshotEdge(bench, contentOf(targeted));
  await assertTargeted(edge.url, { way: contextHeader, key, flags: targeted });
  const asked = { key: unleash.frontendToken, flags: targeted };
  const unleashBytes = await assertFrontendApi(unleash.url, asked);

  const plans = plansOf(contextHeader, key);
  const first = numbered(plans[0] as RequestPlan, 0);
  const bare = await startBaseline(bench, edge.url, first, { bodyAs: "text" });
  const samples = await pollInTurn(bench, load, {
    ...{ rounds: 5, warmUpMs: 3_000, polling: { name: "", status: 200, plans } },
    targets: {
      edge,
      "unleash-server": { ...unleash, plans: plansOf(frontendApi, unleash.frontendToken) },
      "node:http": bare,
    },
  });
  report(bench, `${count(flags)} flags, `, samples);
  const ourBytes = (await captureAnswer(edge.url, first)).body.length;
  bench.note`${count(flags)} flags, a response of Unleash has the flags that are on, with variants, in ${number(unleashBytes)} bytes on average; a response of the edge has the values of all flags in ${number(ourBytes)} bytes.`;
  await Promise.all([edge, unleash, bare].map((server) => server.stop()));
}

function report(
  bench: Bench,
  size: string,
  samples: Record<"edge" | "unleash-server" | "node:http", Sample>,
): void {
  const { edge, "unleash-server": unleash, "node:http": bare } = samples;
  const pairs = [
    [`${size}edge vs. unleash-server`, edge, unleash],
    [`${size}edge vs. node:http`, edge, bare],
    [`${size}unleash-server vs. node:http`, unleash, bare],
  ] as const;
  for (const [what, ...pair] of pairs)
    bench.compare(`${what}: requests per second`, "/s", pair, "perSecond");
  for (const [what, ...pair] of pairs)
    bench.compare(`${what}: CPU per request`, "µs", pair, "cpuMicroseconds");
  for (const [name, { serverBusy, generatorBusy }] of Object.entries(samples))
    bench.note`${size}${name} used ${percent(serverBusy)} of its core, and the load generator ${percent(generatorBusy)} of the other core.`;
}
