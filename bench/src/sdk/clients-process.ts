import { answerParent } from "../processes/answer-parent.ts";
import { createArrivals } from "../processes/arrivals.ts";
import type { ServerSdk } from "./installed-sdk.ts";

const changes = createArrivals("changes");
let clients = 0;

const api = {
  async open(options: { sdk: string; url: string; key: string; count: number }) {
    const { createClient } = (await import(options.sdk)) as ServerSdk;
    for (; clients < options.count; clients += 1) {
      const client = createClient({ baseUrl: options.url, serverKey: options.key });
      if (!(await client.ready())) throw new Error("a client has no flags");
      // The client emits the event when the new rules are in memory.
      client.on("change", changes.arrived);
    }
  },
  arm: () => changes.expect(clients),
  arrivals: changes.all,
};
export type ClientsApi = typeof api;
answerParent(api);
