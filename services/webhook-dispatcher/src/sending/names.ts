import {
  promises as dns,
  type LookupAddress,
  type LookupOptions,
  NODATA,
  NOTFOUND,
  TIMEOUT,
} from "node:dns";
import { pause } from "@halyard/timing";

/** Resolves a name to all its addresses. Fails with the error codes of `node:dns`. */
export type ResolveName = (name: string) => Promise<LookupAddress[]>;

/** Resolves a name as other programs of this machine do: with the hosts file, `localhost` and search domains. */
export const resolveBySystem: ResolveName = (name) => dns.lookup(name, { all: true });

/**
 * Repeats a query that a name server does not answer after 2 s, then after twice as long each time, up to 5 s. c-ares
 * repeats queries to a server that was fast after only 250 ms
 * (https://github.com/nodejs/node/blob/main/deps/cares/src/lib/ares_metrics.c). Five tries give such a server time for
 * a name whose authoritative servers are slow. With one name server, all tries take 8 s to 21 s. With several, the
 * attempt may time out first.
 */
const resolverOptions = { timeout: 2_000, maxTimeout: 5_000, tries: 5 };

/**
 * Time to wait for the second address family after the first has resolved. Most name servers respond sooner, and then
 * connections can try both families. Some name servers never respond to IPv6 queries.
 */
const otherKindMs = 500;

/**
 * Creates a resolver that queries the machine's name servers directly. The system's lookup blocks a thread of a small
 * pool while a name server is silent, so a few names with dead servers would delay all deliveries by seconds. This
 * resolver can wait for any number of names.
 */
export function createPublicResolver(nameServers?: readonly string[]): {
  resolve: ResolveName;
  close(): void;
} {
  const resolver = new dns.Resolver(resolverOptions);
  if (nameServers !== undefined) resolver.setServers(nameServers);
  return {
    async resolve(name) {
      const four = addressesOf(resolver.resolve4(name), 4);
      const six = addressesOf(resolver.resolve6(name), 6);
      await bothUnlessOneIsLate(four.answered, six.answered);
      const found = [...four.found, ...six.found];
      // Most names have addresses of one family only, so one failed query is not an error.
      if (found.length === 0) await four.answered;
      return found;
    },
    close: () => resolver.cancel(),
  };
}

function addressesOf(
  question: Promise<string[]>,
  family: 4 | 6,
): { found: LookupAddress[]; answered: Promise<void> } {
  const found: LookupAddress[] = [];
  const answered = question.then((addresses) => {
    found.push(...addresses.map((address) => ({ address, family })));
  });
  return { found, answered };
}

/** Waits for both queries. If one has found addresses, waits for the other for a limited time only. */
async function bothUnlessOneIsLate(one: Promise<void>, other: Promise<void>): Promise<void> {
  const both = Promise.allSettled([one, other]);
  const first = await Promise.any([one, other]).catch(() => "nothing found");
  if (first === "nothing found") return;
  const waiting = new AbortController();
  await Promise.race([both, pause(otherKindMs, waiting.signal)]);
  waiting.abort();
}

/**
 * Error codes of name lookups. They differ from those of Node.js, because otherwise a name server that rejects a
 * connection would look like a target that does.
 */
export const lookupCodes = {
  notFound: "ERR_NAME_NOT_FOUND",
  failed: "ERR_NAME_LOOKUP_FAILED",
  timedOut: "ERR_NAME_LOOKUP_TIMED_OUT",
  notAllowed: "ERR_ADDRESS_NOT_ALLOWED",
} as const;

/** A name has no address that a connection may use. */
class NameLookupError extends Error {
  override readonly name = "NameLookupError";
  readonly code: (typeof lookupCodes)[keyof typeof lookupCodes];

  constructor(code: NameLookupError["code"], cause?: unknown) {
    super("The host's name does not lead to an address to connect to.", { cause });
    this.code = code;
  }
}

type Answer = (
  error: NodeJS.ErrnoException | null,
  addresses: LookupAddress[] | string,
  family?: number,
) => void;
export type Lookup = (name: string, options: LookupOptions, answer: Answer) => void;

/**
 * Creates the lookup function for connections. A connection uses the addresses that were checked here, without a second
 * query, so a name cannot resolve to another address after the check. One forbidden address rejects the name, because a
 * mix of public and private addresses suggests an attack.
 */
export function createCheckedLookup(options: {
  resolve: ResolveName;
  isAllowed: (address: string) => boolean;
}): Lookup {
  return (name, { all }, answer) => {
    checkedAddresses(name, options).then(
      ([first, ...others]) => {
        if (all) answer(null, [first, ...others]);
        else answer(null, first.address, first.family);
      },
      (error: NameLookupError) => answer(error, []),
    );
  };
}

async function checkedAddresses(
  name: string,
  { resolve, isAllowed }: Parameters<typeof createCheckedLookup>[0],
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const [first, ...others] = await resolve(name).catch((cause: unknown) => {
    throw new NameLookupError(codeOf(cause), cause);
  });
  if (first === undefined) throw new NameLookupError(lookupCodes.notFound);
  if (![first, ...others].every(({ address }) => isAllowed(address)))
    throw new NameLookupError(lookupCodes.notAllowed);
  return [first, ...others];
}

/** Maps an error code of `node:dns` to a lookup code. Both resolvers use the codes of `node:dns`. */
function codeOf(cause: unknown): NameLookupError["code"] {
  if (!(cause instanceof Error) || !("code" in cause)) return lookupCodes.failed;
  if (cause.code === NOTFOUND || cause.code === NODATA) return lookupCodes.notFound;
  return cause.code === TIMEOUT ? lookupCodes.timedOut : lookupCodes.failed;
}
