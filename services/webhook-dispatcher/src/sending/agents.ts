import { type AgentOptions, Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";

/**
 * Connections are kept for the next delivery, but not for long: servers close idle ones after 5 s
 * upwards, and a request that is sent at that very moment is lost.
 */
const idleMs = 4_000;
/** As many as one webhook's deliveries may use at the same time. */
const idlePerTarget = 16;
/**
 * A target with several addresses is tried at one after the other, each for so long: a round trip around
 * the world, with its first packet lost. Node.js gives up much sooner than distant targets answer.
 */
const perAddressMs = 1_500;

type AgentsByProtocol = { http: HttpAgent; https: HttpsAgent };
export type Agents = {
  kept: AgentsByProtocol;
  /** Their connections are new, and serve one request. */
  fresh: AgentsByProtocol;
  destroy(): void;
};

/** They know nothing of proxies, so that what is in the environment for others does not apply. */
export function createAgents(): Agents {
  const shared = { autoSelectFamilyAttemptTimeout: perAddressMs };
  const keeping = { keepAlive: true, timeout: idleMs, maxFreeSockets: idlePerTarget };
  const kept = createBoth({ ...shared, ...keeping });
  const fresh = createBoth({ ...shared, keepAlive: false });
  return {
    kept,
    fresh,
    destroy() {
      for (const agent of [kept.http, kept.https, fresh.http, fresh.https]) agent.destroy();
    },
  };
}

const createBoth = (options: AgentOptions): AgentsByProtocol => ({
  http: new HttpAgent(options),
  https: new HttpsAgent(options),
});
