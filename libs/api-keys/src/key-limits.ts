import { createProblem, type Problem } from "@halyard/http";
import {
  addressBlock,
  createAdmission,
  createRateLimit,
  describeRate,
  type Rate,
} from "@halyard/rate-limit";
import type { DirectoryKey } from "./key-verification.ts";

/**
 * Rate limits per API key, per organization, and per address for invalid keys. Each process has its own counts, so
 * several replicas together admit more requests.
 */
export type KeyLimits = {
  /**
   * Rejects a request with a valid key beyond the rate limit of the key, without access, or beyond the rate limit of the
   * organization, in this order: a key that anyone can read in a page must not use up the limit of the others. The
   * request counts as `cost` requests of the organization. Its client keys have a separate limit of the same size.
   */
  admit(
    key: Pick<DirectoryKey, "id" | "organizationId" | "kind">,
    nowMs: number,
    request: { checkAccess: () => Problem | undefined; cost?: number },
  ): Problem | undefined;
  /** Counts costs of an organization that were not known when its request was admitted. */
  charge(organizationId: string, nowMs: number, cost: number): void;
  /**
   * Returns the problem of an invalid key or session: 401, or 429 for an address beyond its rate limit. Valid keys are verified
   * first, so invalid keys from the same address do not affect them. This does not help an attacker, because secrets of
   * 32 random bytes cannot be guessed.
   */
  rejectInvalidKey(address: string, nowMs: number, problem?: Problem): Problem;
  /**
   * Rejects an address that has sent too many invalid keys. It counts nothing otherwise. Routes use it where the
   * verification of a key is expensive.
   */
  checkAddress(address: string, nowMs: number): Problem | undefined;
};

/**
 * The rate of an organization, as a multiple of the rate of a key. A server key can issue further keys, which
 * must not raise the total rate. Deployments with a key each for some teams and pipelines stay below it.
 */
const keysPerOrganization = 5;

export function createKeyLimits(rate: Rate): KeyLimits {
  const limit = `is ${describeRate(rate)}, in each process. The operator raises it with KEY_REQUESTS_PER_SECOND and KEY_REQUESTS_BURST.`;
  const admitKey = createAdmission(
    createRateLimit(rate),
    `Too many requests with this key. The limit of a key ${limit}`,
  );
  const organizationRate = {
    requestsPerSecond: rate.requestsPerSecond * keysPerOrganization,
    burst: rate.burst * keysPerOrganization,
  };
  const organizations = createRateLimit(organizationRate);
  const admitOrganization = createAdmission(
    organizations,
    `Too many requests with the keys of this organization. Their limit is ${describeRate(organizationRate)}, in each process: ${keysPerOrganization} times that of a key. Large requests count several times. The operator raises it with KEY_REQUESTS_PER_SECOND and KEY_REQUESTS_BURST.`,
  );
  const addresses = createRateLimit(rate);
  const admitAddress = createAdmission(
    addresses,
    `Too many invalid keys or sessions from this address. The limit of an address ${limit}`,
  );
  return {
    admit(key, nowMs, { checkAccess, cost }) {
      const { organizationId, kind } = key;
      const id = kind === "server" ? organizationId : `${organizationId} ${kind}`;
      return admitKey(key, nowMs) ?? checkAccess() ?? admitOrganization({ id }, nowMs, cost);
    },
    charge: organizations.charge,
    rejectInvalidKey: (address, nowMs, problem = keyProblems.invalid) =>
      admitAddress({ id: addressBlock(address) }, nowMs) ?? problem,
    checkAddress(address, nowMs) {
      const id = addressBlock(address);
      return addresses.left(id, nowMs).requests > 0 ? undefined : admitAddress({ id }, nowMs);
    },
  };
}

/** Problems of requests with a missing, invalid or insufficient key. */
export const keyProblems = {
  missing: createProblem("AUTH_001", "Send your API key as `Authorization: Bearer <API_KEY>`."),
  invalid: createProblem("AUTH_001", "The API key is not valid: unknown, expired or revoked."),
  operator: createProblem("AUTH_002", "This needs an API key, not the operator's token."),
  client: createProblem("AUTH_002", "This needs a reader or server key, not a client key."),
  notServer: createProblem("AUTH_002", "This needs a server key of the project."),
  otherEnvironment: createProblem("AUTH_002", "This key works only in its own environment."),
} as const;
