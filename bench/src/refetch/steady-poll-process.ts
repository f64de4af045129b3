import { openRawConnection, type RawConnection } from "../http/raw-connection.ts";
import { type RequestPlan, requestBytes } from "../http/requests.ts";
import { answerParent } from "../processes/answer-parent.ts";
import { nowMs } from "../time.ts";

/** A polling client that sends the same request at fixed intervals. */

/** Latency is measured from the time at which the poll was due, so that queueing counts. */
export type Poll = { dueMs: number; latencyMs: number; status: number };
/** Due polls without a response. The first one is in flight. */
const due: number[] = [];
const polls: Poll[] = [];
let timer: NodeJS.Timeout | undefined;

const api = {
  async begin({ url, plan, intervalMs }: { url: string; plan: RequestPlan; intervalMs: number }) {
    const request = requestBytes(plan, new URL(url).host);
    const opened = Promise.withResolvers<void>();
    const connection: RawConnection = openRawConnection(url, {
      onOpen: opened.resolve,
      onAnswer(status) {
        const dueMs = due.shift() ?? Number.NaN;
        polls.push({ dueMs, latencyMs: nowMs() - dueMs, status });
        if (due.length > 0) connection.send(request);
      },
      onFailure: opened.reject,
    });
    let nextMs = nowMs();
    timer = setInterval(() => {
      for (; nextMs <= nowMs(); nextMs += intervalMs)
        if (due.push(nextMs) === 1) connection.send(request);
    }, 1);
    await opened.promise;
  },

  /** Stops the client and returns all polls. */
  end(): Poll[] {
    clearInterval(timer);
    return polls;
  },
};
export type SteadyPollApi = typeof api;
answerParent(api);
