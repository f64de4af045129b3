import { nowMs } from "../clock.ts";
import { openRawConnection, type RawConnection } from "../http/raw-connection.ts";
import { requestBytes } from "../http/request-bytes.ts";
import { answerParent } from "../processes/answer-parent.ts";
import type { Poll, PollOrder, PollQuestion } from "./steady-poll.ts";

/** Due polls without a response. The first one is in flight. */
let due: number[] = [];
let polls: Poll[] = [];
let timer: NodeJS.Timeout | undefined;

answerParent<PollQuestion>({
  greeting: {},
  async answer(question) {
    switch (question.kind) {
      case "begin":
        await begin(question);
        return {};
      case "end":
        clearInterval(timer);
        return { polls };
    }
  },
});

function begin({ url, plan, intervalMs }: PollOrder): Promise<void> {
  const { hostname: host, port } = new URL(url);
  const request = requestBytes(plan, `${host}:${port}`);
  const opened = Promise.withResolvers<void>();
  const connection: RawConnection = openRawConnection(
    { host, port: Number(port) },
    {
      onOpen: opened.resolve,
      onAnswer(status) {
        const dueMs = due.shift() ?? Number.NaN;
        polls.push({ dueMs, latencyMs: nowMs() - dueMs, status });
        if (due.length > 0) connection.send(request);
      },
      onFailure: opened.reject,
    },
  );
  due = [];
  polls = [];
  const begunMs = nowMs();
  let count = 0;
  timer = setInterval(() => {
    while (begunMs + count * intervalMs <= nowMs()) {
      due.push(begunMs + count * intervalMs);
      count += 1;
      if (due.length === 1) connection.send(request);
    }
  }, 1);
  return opened.promise;
}
