/**
 * An application that starts and stays idle. It is JavaScript, because the compiler that Node.js loads for TypeScript
 * would need more memory than the SDK. `START` selects what it does first:
 *
 * - `client`: loads the server SDK and creates a client;
 * - `fetch`: requests the same rule set by `fetch`, parses it, and keeps it;
 * - `nothing`.
 */
const { START, SDK, BASE_URL, SERVER_KEY, FLAG } = process.env;

const starts = {
  async client() {
    const beganMs = performance.now();
    const { createClient } = await import(SDK);
    const loadedMs = performance.now();
    const client = createClient({ baseUrl: BASE_URL, serverKey: SERVER_KEY });
    if (!(await client.ready())) throw new Error("the client has no flags");
    const readyMs = performance.now();
    // An evaluation of all flags would compile them.
    const hasFlags = client.evaluate(FLAG).reason !== "flag_not_found";
    return { kept: client, hasFlags, loadMs: loadedMs - beganMs, startMs: readyMs - loadedMs };
  },
  async fetch() {
    const beganMs = performance.now();
    const response = await fetch(`${BASE_URL}/api/v1/sdk/ruleset?format=2`, {
      headers: { authorization: `Bearer ${SERVER_KEY}` },
    });
    const kept = await response.json();
    const startMs = performance.now() - beganMs;
    return { kept, hasFlags: FLAG in kept.flags, loadMs: 0, startMs };
  },
  nothing: async () => ({ hasFlags: true, loadMs: 0, startMs: 0 }),
};

const { kept, ...started } = await starts[START]();

process.on("message", () => {
  globalThis.gc();
  const heapBytes = process.memoryUsage().heapUsed;
  process.send({ answer: { heapBytes, isKept: kept !== undefined } });
});
process.on("disconnect", () => process.exit());
process.on("SIGTERM", () => process.exit());
process.send(started);
