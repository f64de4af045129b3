import { findNatsServer, startLocalNats, startLocalPostgres } from "../src/index.ts";

/**
 * A launcher in its own process, for tests that run it as another user or kill it. It starts both servers below the
 * given directory, prints their URLs, and stops them when its input ends.
 */
const [directory = "", cacheDir = "", reachableDirectory = ""] = process.argv.slice(2);
const steps: string[] = [];
const postgres = await startLocalPostgres({
  dataDir: `${directory}/postgres`,
  reachableDirectory,
  durable: false,
  throwaway: true,
  onStep: (text) => steps.push(text),
});
const binary = await findNatsServer({ cacheDir });
const nats = await startLocalNats({ binary, storeDir: `${directory}/nats`, throwaway: true });
const { adminUrl, clusterDir, pid } = postgres;
const started = { adminUrl, clusterDir, postgresPid: pid, natsUrl: nats.url, natsPid: nats.pid };
process.stdout.write(`${JSON.stringify({ ...started, steps, uid: process.getuid?.() })}\n`);
for await (const _ of process.stdin);
await nats.stop();
await postgres.stop();
