import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * The targets of webhooks, each on a port of its own: the least that a Node server can do to take a
 * request and answer it. `expect` begins to count; `wait` is answered when all that is expected has come.
 */
export type ReceiverQuestion = { expect: number } | { wait: true };
/** By the clock of the system: when the first request and the last one came. */
export type Arrivals = { firstMs: number; lastMs: number };

const targets = Number(process.env.TARGETS);
let missing = 0;
let arrivals: Arrivals = { firstMs: 0, lastMs: 0 };
let complete = Promise.withResolvers<Arrivals>();

const urls = await Promise.all(Array.from({ length: targets }, listen));
answerParent<ReceiverQuestion>({
  greeting: { urls },
  async answer(question) {
    if ("wait" in question) return complete.promise;
    missing = question.expect;
    arrivals = { firstMs: 0, lastMs: 0 };
    complete = Promise.withResolvers();
    return {};
  },
});

function listen(): Promise<string> {
  const server = createServer((request, response) => {
    arrived();
    request.resume();
    request.on("end", () => response.end());
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    });
  });
}

function arrived(): void {
  arrivals.lastMs = Date.now();
  if (arrivals.firstMs === 0) arrivals.firstMs = arrivals.lastMs;
  missing -= 1;
  if (missing === 0) complete.resolve(arrivals);
}
