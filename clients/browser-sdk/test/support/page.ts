import { createClient } from "@halyard/browser-sdk";

/** Runs in the browser, and gives the test a client. */
Object.assign(globalThis, {
  start(options: Parameters<typeof createClient>[0]) {
    const client = createClient(options);
    Object.assign(globalThis, { client });
    return client.ready();
  },
});
