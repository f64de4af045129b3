import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";
import {
  addressBlock,
  createAdmission,
  createRateLimit,
  describeRate,
  type Rate,
} from "@halyard/rate-limit";
import type { Refusal } from "@halyard/service";

/**
 * How often an address may come with keys that do not work. Guessing one is hopeless; this is against
 * floods, and against applications that ask without end with a key that was revoked. Who has a key that
 * works is never refused for what others send from its address: it is recognized before.
 */
export type WrongKeys = {
  /** Takes one into account; answers how to refuse an address that has sent too many. */
  refuse(request: IncomingMessage, nowMs: number): Refusal | undefined;
};

/** The rate of an edge without a configured one. */
export const usualInvalidKeyRate: Rate = { requestsPerSecond: 100, burst: 1_000 };

/** What a proxy says of who sent a request is believed of those in `trustedProxies` alone. */
export function createWrongKeys(trustedProxies: readonly string[], rate: Rate): WrongKeys {
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  const admit = createAdmission(
    createRateLimit(rate),
    `Too many invalid keys from this address. The limit of an address is ${describeRate(rate)}, on each edge. The operator raises it with INVALID_KEYS_PER_SECOND and INVALID_KEYS_BURST.`,
  );
  return {
    refuse: (request, nowMs) => admit({ id: addressBlock(proxyAddr(request, isTrusted)) }, nowMs),
  };
}
