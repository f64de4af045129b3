import { answerParent } from "../processes/answer-parent.ts";
import { cpuMs, cpuMsOfTree } from "../processes/process-usage.ts";
import { quantile } from "../statistics.ts";
import { nowMs } from "../time.ts";
import type { LoadOrder, Watched } from "./load.ts";
import { openRawConnection, type RawConnection } from "./raw-connection.ts";
import { numberedRequest, requestBytes } from "./requests.ts";
import { type Awake, stayAwake } from "./stay-awake.ts";

/** Number of the next request. It continues from run to run, so that no request is repeated. */
let next = 0;
const api = { run };
export type LoadGenerator = typeof api;
answerParent(api);

async function run(order: LoadOrder) {
  const requests = order.requests.map((plan) => requestBytes(plan, new URL(order.url).host));
  const failed = Promise.withResolvers<never>();
  const latenciesMs: number[] = [];
  let measuring = false;
  let worked = false;
  const awake = order.awake === true ? stayAwake(hasWorked) : undefined;

  function hasWorked(): boolean {
    const did = worked;
    worked = false;
    return did;
  }

  function open(): RawConnection {
    let sentMs = 0;
    const own = requests.map((bytes) => numberedRequest(Buffer.from(bytes)));
    const send = () => {
      sentMs = performance.now();
      connection.send((own[next % own.length] as (typeof own)[number])(next));
      next += 1;
    };
    const connection = openRawConnection(order.url, {
      onOpen: send,
      onAnswer: (status, answer) => {
        worked = true;
        if (status !== order.expectedStatus)
          failed.reject(new Error(`unexpected response: ${answer.toString("utf8", 0, 500)}`));
        if (measuring) latenciesMs.push(performance.now() - sentMs);
        send();
      },
      onFailure: failed.reject,
    });
    return connection;
  }

  const connections = Array.from({ length: order.connections }, open);
  const wait = (ms: number) =>
    Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), failed.promise]);
  await wait(order.leadInMs);
  measuring = true;
  const before = usage(order.watch, awake);
  await wait(order.measureMs);
  const after = usage(order.watch, awake);
  measuring = false;
  awake?.stop();
  for (const connection of connections) connection.close();

  const elapsedMs = after.atMs - before.atMs;
  return {
    ...{ answers: latenciesMs.length, elapsedMs, medianLatencyMs: quantile(latenciesMs, 0.5) },
    p99LatencyMs: quantile(latenciesMs, 0.99),
    /** CPU share of the generator without idle turns. Near 1, it limits the result. */
    generatorBusy: (after.ownMs - before.ownMs - (after.idleCpuMs - before.idleCpuMs)) / elapsedMs,
    /** CPU time of each watched process during the measurement. */
    cpuMs: after.watchedMs.map((usedMs, index) => usedMs - (before.watchedMs[index] ?? 0)),
  };
}

function usage(watch: readonly Watched[], awake: Awake | undefined) {
  const own = process.cpuUsage();
  return {
    atMs: nowMs(),
    idleCpuMs: awake?.idleCpuMs() ?? 0,
    ownMs: (own.user + own.system) / 1e3,
    watchedMs: watch.map(({ pid, tree }) => (tree === true ? cpuMsOfTree(pid) : cpuMs(pid))),
  };
}
