import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * Minimal targets of webhooks, each on its own port. `expect` starts counting; `wait` resolves when all
 * expected requests have arrived.
 */
export type ReceiverQuestion = { expect: number } | { wait: true };
/** Times of the first and the last request, in the system's clock. */
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
