import type { AddressInfo } from "node:net";
import { answerParent } from "../processes/answer-parent.ts";
import { importPeer } from "./peers-package.ts";

/**
 * Starts `unleash-server` as documented for production. Requests to the internet and the rate limit, which
 * would stop a load test, are off. Environment variables contain the other settings; see `unleash-server.ts`.
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
answerParent({}, { url: `http://127.0.0.1:${port}` });

type Exports = { start(options: object): Promise<{ server: { address(): unknown } }> };
