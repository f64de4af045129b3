import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import type { BareAnswer } from "./bare-server.ts";
import { type CapturedAnswer, captureAnswer, headerOf, headersWithout } from "./capture-answer.ts";
import type { RequestPlan } from "./load.ts";

export type Baseline = { url: string; child: Child };

/** Headers that Node adds by itself; the bare server gets them from the same hand. */
const nodesOwn = ["date", "connection", "keep-alive"];

/** Starts a bare server that gives the very answer that the edge gives, and makes sure that it does. */
export async function startBaseline(
  bench: Bench,
  edgeUrl: string,
  plan: RequestPlan,
  options: {
    bodyAs: BareAnswer["bodyAs"];
    readsBody?: boolean;
    nodeOptions?: readonly string[];
  },
): Promise<Baseline> {
  const wanted = await captureAnswer(edgeUrl, plan);
  const child = await startChild(bench, {
    program: join(import.meta.dirname, "bare-server.ts"),
    core: bench.cores?.server,
    ...options,
  });
  const order: BareAnswer = {
    status: wanted.status,
    headers: headersWithout(wanted, nodesOwn),
    bodyBase64: wanted.body.toString("base64"),
    bodyAs: options.bodyAs,
    readsBody: options.readsBody ?? false,
    keepAliveTimeoutMs: Number(/timeout=(\d+)/.exec(headerOf(wanted, "keep-alive"))?.[1]) * 1_000,
  };
  await child.ask(order);
  const { url } = child.greeting as { url: string };
  assertSame(wanted, await captureAnswer(url, plan));
  return { url, child };
}

/** A baseline that sent other bytes would make the comparison worthless. */
function assertSame(wanted: CapturedAnswer, given: CapturedAnswer): void {
  const text = ({ status, statusText, headers, body }: CapturedAnswer) =>
    [status, statusText, ...headers, body.toString("latin1")]
      .join("\n")
      .replace(/\nDate\n[^\n]*/i, "");
  if (text(wanted) !== text(given))
    throw new Error(`the baseline answers differently:\n${text(wanted)}\n---\n${text(given)}`);
}
