import type { AddressInfo } from "node:net";
import { answerParent } from "../processes/answer-parent.ts";
import { importPeer } from "./peers-package.ts";

/**
 * `unleash-server` as its documentation has it started for production, by its own `start`. What it
 * would ask of the internet is off, and so is the limit of requests a minute, which no load test would
 * get past. The rest comes by its own environment variables; see `unleash-server.ts`.
 */
const unlimited = Number.MAX_SAFE_INTEGER;
const { start } = await importPeer<Exports>("unleash-server");
const { server } = await start({
  server: { host: "127.0.0.1", port: 0 },
  versionCheck: { enable: false },
  telemetry: false,
  rateLimiting: { sdkApiMaxPerMinute: unlimited, tokenAuthenticationMaxPerMinute: unlimited },
});
const { port } = server.address() as AddressInfo;
answerParent({ greeting: { url: `http://127.0.0.1:${port}` }, answer: async () => ({}) });

type Exports = {
  start(options: object): Promise<{ server: { address(): unknown } }>;
};
