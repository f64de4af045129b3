import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import type { BareAnswer } from "./bare-server.ts";
import { type CapturedAnswer, captureAnswer, headerOf, headersWithout } from "./capture-answer.ts";
import type { RequestPlan } from "./load.ts";

export type Baseline = { url: string; child: Child };

/** Headers that Node adds, even on the bare server. */
const nodesOwn = ["date", "connection", "keep-alive"];

/** Starts a bare server that returns the edge's response, and verifies it. */
export async function startBaseline(
  bench: Bench,
  edgeUrl: string,
  plan: RequestPlan,
  options: { bodyAs: BareAnswer["bodyAs"]; readsBody?: boolean },
): Promise<Baseline> {
  const expected = await captureAnswer(edgeUrl, plan);
  const child = await startChild(bench, {
    program: join(import.meta.dirname, "bare-server.ts"),
    core: bench.cores?.server,
  });
  const order: BareAnswer = {
    status: expected.status,
    headers: headersWithout(expected, nodesOwn),
    bodyBase64: expected.body.toString("base64"),
    bodyAs: options.bodyAs,
    readsBody: options.readsBody ?? false,
    keepAliveTimeoutMs: Number(/timeout=(\d+)/.exec(headerOf(expected, "keep-alive"))?.[1]) * 1_000,
  };
  await child.ask(order);
  const { url } = child.greeting as { url: string };
  assertSame(expected, await captureAnswer(url, plan));
  return { url, child };
}

/**
 * Fails if the baseline sends other bytes than the edge, because the comparison would be meaningless.
 */
function assertSame(expected: CapturedAnswer, given: CapturedAnswer): void {
  const text = ({ status, statusText, headers, body }: CapturedAnswer) =>
    [status, statusText, ...headers, body.toString("latin1")]
      .join("\n")
      .replace(/\nDate\n[^\n]*/i, "");
  if (text(expected) !== text(given))
    throw new Error(`the baseline's response differs:\n${text(expected)}\n---\n${text(given)}`);
}
