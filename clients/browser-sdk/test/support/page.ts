import { createClient } from "@halyard/browser-sdk";
import { shareStreams } from "@halyard/browser-sdk/shared-streams";

/** Runs in the browser, and gives the test a client. */
Object.assign(globalThis, {
  start({ sharesStreams, ...options }: Options) {
    const client = createClient(sharesStreams ? { ...options, fetch: shareStreams() } : options);
    Object.assign(globalThis, { client });
    return client.ready();
  },
});

type Options = Parameters<typeof createClient>[0] & { sharesStreams?: boolean };
