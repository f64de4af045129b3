/** An application whose server SDK has the list of an audience. It is JavaScript for the reason in `start-process.js`. */
const { SDK, BASE_URL, SERVER_KEY, ENTRIES, DROPPED } = process.env;
const { createClient } = await import(SDK);
const entries = Number(ENTRIES);

// Node.js keeps memory after requests, also if their bodies are dropped.
for (const url of JSON.parse(DROPPED)) await (await fetch(url)).arrayBuffer();

const beganMs = performance.now();
const client = createClient({ baseUrl: BASE_URL, serverKey: SERVER_KEY });
if (!(await client.ready({ timeoutMs: 60_000 }))) throw new Error("the client has no list");
const startMs = performance.now() - beganMs;
const isMember = client.isEnabled("listed", { id: "user-0" });
if (isMember !== entries > 0) throw new Error("the list is wrong");

/** Every second user is in the list. */
const ids = Array.from({ length: 100_000 }, (_, n) => `user-${(n * 7_919) % (2 * entries + 1)}`);

/** Returns the time of an evaluation for a new context, in nanoseconds: the shortest of several rounds. */
function timeOf(key) {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 20; round += 1) {
    const roundBeganMs = performance.now();
    for (const id of ids) client.isEnabled(key, { id });
    bestMs = Math.min(bestMs, performance.now() - roundBeganMs);
  }
  return (bestMs * 1e6) / ids.length;
}

const calls = {
  collect() {
    globalThis.gc();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return { usedBytes: heapUsed + arrayBuffers };
  },
  measure: () => ({ listedNs: timeOf("listed"), comparedNs: timeOf("compared") }),
};

process.on("message", ({ name }) => process.send({ answer: calls[name]() }));
process.on("disconnect", () => process.exit());
process.on("SIGTERM", () => process.exit());
process.send({ startMs });
