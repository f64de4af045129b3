import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { answerParent, listen } from "../processes/answer-parent.ts";
import { createArrivals } from "../processes/arrivals.ts";

/** Minimal targets of webhooks, each on its own port. */
const requests = createArrivals("deliveries", Date.now, 180_000);
const hanging = new Set<Socket>();

const urlsOf = (targets: number, start: () => Promise<string>) =>
  Promise.all(Array.from({ length: targets }, async () => `${await start()}/`));

const api = {
  /** Starts targets that respond immediately. */
  start: (targets: number) =>
    urlsOf(targets, () =>
      listen(
        createHttpServer((request, response) => {
          requests.arrived();
          request.resume();
          request.on("end", () => response.end());
        }),
      ),
    ),

  /** Starts targets that accept requests and never respond. */
  startHanging: (targets: number) =>
    urlsOf(targets, () =>
      listen(
        createServer((socket) => {
          hanging.add(socket);
          socket.resume();
          socket.on("error", () => undefined);
          socket.on("close", () => hanging.delete(socket));
        }),
      ),
    ),

  expect: requests.expect,
  /** Resolves when all expected requests have arrived. Returns the time of the first in the system's clock. */
  all: async () => (await requests.all()).at(0) ?? Number.NaN,
  /** Closes all waiting requests. */
  drop() {
    for (const socket of hanging) socket.destroy();
  },
};
export type TargetsApi = typeof api;
answerParent(api);
