import { nowMs } from "../clock.ts";
import { answerParent } from "../processes/answer-parent.ts";
import { cpuMs, cpuMsOfTree, machineCpuMs } from "../processes/process-usage.ts";
import { quantile } from "../statistics.ts";
import type { LoadOrder, LoadResult, Watched } from "./load.ts";
import { openRawConnection, type RawConnection } from "./raw-connection.ts";
import { requestBytes } from "./request-bytes.ts";

/** Connections open and the server's code warms up before anything counts. */
const leadInMs = 300;

/** Which request is next; it goes on from run to run, so that no change is sent twice in a row. */
let next = 0;

answerParent<LoadOrder>({ greeting: {}, answer: run });

async function run(order: LoadOrder): Promise<LoadResult> {
  const { hostname, port } = new URL(order.url);
  const requests = order.requests.map((plan) => requestBytes(plan, `${hostname}:${port}`));
  const failed = Promise.withResolvers<never>();
  const latenciesMs: number[] = [];
  let measuring = false;

  function open(): RawConnection {
    let sentMs = 0;
    const send = () => {
      sentMs = performance.now();
      connection.send(requests[next % requests.length] as Buffer);
      next += 1;
    };
    const connection = openRawConnection(
      { host: hostname, port: Number(port) },
      {
        onOpen: send,
        onAnswer: (status, answer) => {
          if (status !== order.expectedStatus)
            failed.reject(new Error(`unexpected answer: ${answer.toString("utf8", 0, 500)}`));
          if (measuring) latenciesMs.push(performance.now() - sentMs);
          send();
        },
        onFailure: failed.reject,
      },
    );
    return connection;
  }

  const connections = Array.from({ length: order.connections }, open);
  const wait = (ms: number) =>
    Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), failed.promise]);
  await wait(leadInMs);
  measuring = true;
  const before = usage(order.watch);
  await wait(order.measureMs);
  const after = usage(order.watch);
  measuring = false;
  for (const connection of connections) connection.close();

  const elapsedMs = after.atMs - before.atMs;
  return {
    answers: latenciesMs.length,
    elapsedMs,
    fromMs: before.atMs,
    toMs: after.atMs,
    medianLatencyMs: quantile(latenciesMs, 0.5),
    p99LatencyMs: quantile(latenciesMs, 0.99),
    generatorBusy: (after.ownMs - before.ownMs) / elapsedMs,
    machineBusy: (after.machineMs - before.machineMs) / elapsedMs,
    cpuMs: after.watchedMs.map((value, index) => value - (before.watchedMs[index] ?? 0)),
  };
}

function usage(watch: readonly Watched[]) {
  const own = process.cpuUsage();
  return {
    atMs: nowMs(),
    ownMs: (own.user + own.system) / 1e3,
    machineMs: machineCpuMs(),
    watchedMs: watch.map(({ pid, tree }) => (tree === true ? cpuMsOfTree(pid) : cpuMs(pid))),
  };
}
