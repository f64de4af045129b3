import type { Client } from "@halyard/server-sdk";
import { nowMs } from "../clock.ts";
import { answerParent } from "../processes/answer-parent.ts";
import type { ServerSdk } from "./installed-sdk.ts";
import type { ClientsQuestion } from "./started-clients.ts";

/** Clients of the server SDK that record when they have applied a change. */

/** Timeout of a change. A later one counts as lost. */
const timeoutMs = 20_000;

const clients: Client[] = [];
let moments: number[] = [];
let complete = Promise.withResolvers<void>();

answerParent<ClientsQuestion>({
  greeting: {},
  async answer(question) {
    switch (question.kind) {
      case "open":
        await openAll(question);
        return {};
      case "arm":
        moments = [];
        complete = Promise.withResolvers<void>();
        return {};
      case "arrivals": {
        const late = setTimeout(() => complete.reject(new Error(missing())), timeoutMs);
        await complete.promise;
        clearTimeout(late);
        return { moments };
      }
    }
  },
});

function missing(): string {
  return `${clients.length - moments.length} of ${clients.length} clients did not apply the change`;
}

async function openAll({ sdk, url, key, count }: Extract<ClientsQuestion, { kind: "open" }>) {
  const { createClient } = (await import(sdk)) as ServerSdk;
  for (let opened = 0; opened < count; opened += 1) {
    const client = createClient({ baseUrl: url, serverKey: key });
    if (!(await client.ready())) throw new Error("a client has no flags");
    client.on("change", applied);
    clients.push(client);
  }
}

/** The client emits the event when the new rules are in memory. */
function applied(): void {
  moments.push(nowMs());
  if (moments.length === clients.length) complete.resolve();
}
