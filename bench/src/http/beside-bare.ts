import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { below, type Goal, number, percent } from "../reporting.ts";
import type { BareAnswer, BareServer } from "./bare-server.ts";
import { connections, type Load, type Polling, pollInTurn, type Target } from "./load.ts";
import { type CapturedAnswer, captureAnswer, headerOf, headersWithout } from "./raw-connection.ts";
import { numbered, type RequestPlan } from "./requests.ts";

export type BarePolling = Polling & {
  goal?: Goal;
  memoryGoal?: Goal;
  /** The bare server reads and parses request bodies. */
  bareReadsBody?: boolean;
};

/** Goal for an edge with 100 flags. */
export const memoryGoal = below(130);
/** CPU share of the load generator above which it may limit the result. */
const generatorLimit = 0.95;

/**
 * Measures the edge and the bare server in turn. The bare server sends its body as bytes and as a string; the
 * faster one counts. Returns the edge's response bytes per millisecond of CPU.
 */
export async function besideBare(
  bench: Bench,
  { load, edge, polling }: { load: Load; edge: Target; polling: BarePolling },
): Promise<number> {
  const { name, goal, memoryGoal } = polling;
  bench.say(`${name}: edge and bare node:http in turn`);
  const first = numbered(polling.plans[0] as RequestPlan, 0);
  const startBare = (bodyAs: "bytes" | "text") =>
    startBaseline(bench, edge.url, first, { bodyAs, readsBody: polling.bareReadsBody ?? false });
  const bareBytes = await startBare("bytes");
  const bareText = await startBare("text");
  const targets = { edge, bareBytes, bareText };
  const samples = await pollInTurn(bench, load, { rounds: 5, polling, targets });
  await Promise.all([bareBytes.stop(), bareText.stop()]);
  const { edge: ours, bareBytes: bytes, bareText: text } = samples;
  const bare = bytes.perSecond > text.perSecond ? bytes : text;
  const { body } = await captureAnswer(edge.url, first);

  const both = [ours, bare] as const;
  const latency = `${name}: median latency at ${connections} connections`;
  bench.compare(`${name}: requests per second`, "/s", both, "perSecond", goal);
  bench.compare(`${name}: CPU per request`, "µs", both, "cpuMicroseconds");
  bench.compare(latency, "ms", both, "medianLatencyMs");
  bench.compare(`${name}: memory under load`, "MB", both, "residentMb", memoryGoal);
  bench.note`${name}: bare server ${number(text.perSecond)} /s with a string body, ${number(bytes.perSecond)} /s with bytes; the faster one is the baseline.`;
  const isLimited = Math.max(ours.generatorBusy, bare.generatorBusy) > generatorLimit;
  const limit = isLimited ? " The load generator was a limit: compare the CPU per request." : "";
  bench.note`${name}: CPU of the edge ${percent(ours.serverBusy)}, of the bare server ${percent(bare.serverBusy)}, of the load generator ${percent(ours.generatorBusy)} and ${percent(bare.generatorBusy)} of a core.${limit}`;
  return (body.length * 1e3) / ours.cpuMicroseconds;
}

/** Headers that Node adds, even on the bare server. */
const nodesOwn = ["date", "connection", "keep-alive"];

export const startBareServer = (bench: Bench) =>
  startChild<BareServer>(bench, { program: "http/bare-server.ts", core: "server" });

/** Starts a bare server that returns the edge's response, and verifies it. */
export async function startBaseline(
  bench: Bench,
  edgeUrl: string,
  plan: RequestPlan,
  options: { bodyAs: BareAnswer["bodyAs"]; readsBody?: boolean },
): Promise<Target> {
  const expected = await captureAnswer(edgeUrl, plan);
  const child = await startBareServer(bench);
  await child.call.answer({
    ...{ status: expected.status, headers: headersWithout(expected, nodesOwn) },
    ...{ bodyBase64: expected.body.toString("base64"), bodyAs: options.bodyAs },
    readsBody: options.readsBody ?? false,
    keepAliveTimeoutMs: Number(/timeout=(\d+)/.exec(headerOf(expected, "keep-alive"))?.[1]) * 1_000,
  });
  const { url } = child.greeting;
  assertSame(expected, await captureAnswer(url, plan));
  return { ...child, url };
}

/** Fails if the baseline sends other bytes than the edge, because the comparison would be meaningless. */
function assertSame(expected: CapturedAnswer, given: CapturedAnswer): void {
  const text = (answer: CapturedAnswer) =>
    [
      ...[answer.status, answer.statusText, ...headersWithout(answer, ["date"])],
      answer.body.toString("latin1"),
    ].join("\n");
  if (text(expected) !== text(given))
    throw new Error(`the baseline's response differs:\n${text(expected)}\n---\n${text(given)}`);
}
