import { eventually, startReceiver } from "@halyard/testing";
import { connect } from "@nats-io/transport-node";
import { startSystem } from "../../system/system.ts";
import { createTenant, must, operatorToken, plansText } from "../../system/tenancy.ts";
import { awaitSettled, awaitSnapshot } from "../agreement.ts";
import { meetLimits, tinyPlan } from "./limits.ts";
import { sendMalformed } from "./malformed.ts";
import { createMask, type Mask } from "./mask.ts";
import { useManagement } from "./ordinary-use.ts";
import { rejectEverywhere } from "./rejections.ts";
import { recordReceived, useSdk, useStreams } from "./sdk-use.ts";
import { awaitAudited, awaitEventsRead, listenToMessages, recordStored } from "./stored.ts";
import { createTranscript, type Keys, type Transcript } from "./transcript.ts";

/** Number of requests that the receiver gets: a test, five events, a redelivery, and a change during a stream. */
const receivedRequests = 8;

/**
 * Runs one scenario in a complete system. Returns transcripts by name: every route with every kind of response,
 * streams, malformed HTTP, limits, requests to webhooks, and stored data. Two runs return equal transcripts.
 */
export async function recordExchanges(): Promise<Map<string, string>> {
  const receiver = await startReceiver();
  const system = await startSystem({
    managements: 1,
    schedulers: 1,
    dispatchers: 1,
    meterings: 1,
    edges: 1,
    settings: () => ({
      management: {
        PLANS: plansText({ tiny: tinyPlan, "no streams": { sse_connections: 0 } }),
      },
    }),
  });
  const connection = await connect({ servers: system.nats.url });
  try {
    const messages = listenToMessages(connection);
    const gateway = await system.startGateway();
    const { url } = gateway;
    const keys: Keys = { operator: operatorToken };
    const first = createMask();
    const files = new Map<string, string>();
    const chapter = async <Result>(
      name: string,
      tell: (transcript: Transcript, mask: Mask) => Promise<Result>,
    ): Promise<Result> => {
      // Each chapter has its own numbers, so that a difference in one chapter does not change the others.
      const mask = files.size === 0 ? first : first.fork();
      const transcript = createTranscript({ url, keys, mask });
      const result = await tell(transcript, mask);
      files.set(name, transcript.text());
      return result;
    };

    const ids = await chapter("management", (transcript) =>
      useManagement(transcript, {
        keys,
        receiver,
        url,
        awaitEventsRead: () => awaitEventsRead(connection),
        awaitAudited: () => awaitAudited(system.sql),
      }),
    );
    await chapter("sdk", useSdk);
    const change = () =>
      must(`${url}/api/v1/flags/${ids.id}`, {
        method: "PATCH",
        key: keys.server as string,
        body: { enabled: true, rollout_percentage: 100, targeting_rules: [] },
      });
    await chapter("streams", (transcript, mask) =>
      useStreams(transcript, { url, keys, mask, change: () => change().then(() => undefined) }),
    );
    await eventually(() => receiver.requests.length === receivedRequests, {
      because: "the change during the stream is delivered",
    });
    await chapter("received", async (transcript, mask) =>
      recordReceived(transcript, {
        requests: receiver.requests,
        secret: "a secret of the customer",
        mask,
      }),
    );
    await awaitSettled(system.sql);
    await awaitSnapshot(system.nats.url);
    await chapter("stored", async (transcript, mask) => {
      await recordStored(transcript, { sql: system.sql, natsUrl: system.nats.url, mask });
      messages.record(transcript, mask);
    });
    const foreign = await createTenant(url, { name: "Foreign" });
    keys.foreign = foreign.serverKey;
    await chapter("refusals", (transcript) => rejectEverywhere(transcript, ids));
    await chapter("limits", (transcript) => meetLimits(transcript, { url, keys }));
    const listeners = [
      ["gateway", url],
      ["management", system.managements[0]?.url],
      ["scheduler", system.schedulers[0]?.url],
      ["webhook-dispatcher", system.dispatchers[0]?.url],
      ["usage-metering", system.meterings[0]?.url],
      ["sdk-edge", system.edges[0]?.url],
    ] as [string, string][];
    await chapter("malformed", (transcript, mask) =>
      sendMalformed(transcript, { listeners, mask }),
    );
    return files;
  } finally {
    await connection.close();
    await system.close();
    await receiver.close();
  }
}
