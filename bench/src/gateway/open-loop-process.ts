import { openRawConnection, type RawConnection } from "../http/raw-connection.ts";
import { type RequestPlan, requestBytes } from "../http/requests.ts";
import { answerParent } from "../processes/answer-parent.ts";
import { quantile } from "../statistics.ts";

/**
 * A load generator that sends requests at a fixed rate, whether responses have arrived or not. The latency of a request
 * counts from the moment at which it was due, so that waiting for a connection is included. It never sleeps.
 */
type OpenLoopOrder = {
  url: string;
  connections: number;
  perSecond: number;
  durationMs: number;
  request: RequestPlan;
  expectedStatus: number;
};

const api = { run };
export type OpenLoop = typeof api;
answerParent(api);

async function run(order: OpenLoopOrder) {
  const bytes = requestBytes(order.request, new URL(order.url).host);
  const intervalMs = 1_000 / order.perSecond;
  const total = Math.floor(order.durationMs / intervalMs);
  const latenciesMs: number[] = [];
  const free: ((dueMs: number) => void)[] = [];
  const due: number[] = [];
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();

  function open(): RawConnection {
    let dueMs = 0;
    const send = (at: number) => {
      dueMs = at;
      connection.send(bytes);
    };
    const connection = openRawConnection(order.url, {
      onOpen: () => free.push(send),
      onAnswer: (status, answer) => {
        if (status !== order.expectedStatus)
          reject(new Error(`unexpected response: ${answer.toString("utf8", 0, 500)}`));
        latenciesMs.push(performance.now() - dueMs);
        free.push(send);
        if (latenciesMs.length === total) resolve();
      },
      onFailure: reject,
    });
    return connection;
  }

  const connections = Array.from({ length: order.connections }, open);
  const startMs = performance.now() + 100;
  let planned = 0;
  function tick(): void {
    const nowMs = performance.now();
    for (; planned < total && startMs + planned * intervalMs <= nowMs; planned += 1)
      due.push(startMs + planned * intervalMs);
    while (due.length > 0 && free.length > 0) free.shift()?.(due.shift() as number);
    if (latenciesMs.length < total) setImmediate(tick);
  }
  tick();
  await ended;
  for (const connection of connections) connection.close();
  // The first tenth warms up.
  const counted = latenciesMs.slice(total / 10);
  return { medianMs: quantile(counted, 0.5), p99Ms: quantile(counted, 0.99) };
}
