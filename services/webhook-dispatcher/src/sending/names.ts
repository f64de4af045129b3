import {
  promises as dns,
  type LookupAddress,
  type LookupOptions,
  NODATA,
  NOTFOUND,
  TIMEOUT,
} from "node:dns";
import { pause } from "@halyard/timing";

/** All addresses of a name; it fails with the codes of `node:dns`. */
export type ResolveName = (name: string) => Promise<LookupAddress[]>;

/**
 * As every other program of this machine resolves it, with the names of its own network: what is in the
 * hosts file, `localhost`, and names that are completed.
 */
export const resolveBySystem: ResolveName = (name) => dns.lookup(name, { all: true });

/**
 * How a name server that keeps silent is asked again: after 2 s, and twice as long each time, up to 5 s. One
 * that has been quick is asked again after a quarter of a second already, so that it takes these many
 * questions to give it time for a name whose own servers are slow
 * (https://github.com/nodejs/node/blob/main/deps/cares/src/lib/ares_metrics.c). All in all that is 8 s to
 * 21 s with one name server; with several, the end of the attempt may come first.
 */
const resolverOptions = { timeout: 2_000, maxTimeout: 5_000, tries: 5 };

/**
 * Some name servers never answer questions for IPv6. Who has an address of one kind waits for the other
 * only as long as a name server that answers takes, mostly, so that connections can be tried at both.
 */
const otherKindMs = 500;

/**
 * By asking the name servers of the machine ourselves. The system's look-up blocks one of the few threads
 * that Node.js has for such things, for as long as a name server keeps silent: a handful of names whose
 * servers are dead would delay everybody's deliveries by seconds. Here any number of names may wait.
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
      // Most names have addresses of one kind only, so that one question without an answer is no failure.
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

/** When one question has brought addresses, the other is waited for a little; otherwise to its end. */
async function bothUnlessOneIsLate(one: Promise<void>, other: Promise<void>): Promise<void> {
  const both = Promise.allSettled([one, other]);
  const first = await Promise.any([one, other]).catch(() => "nothing found");
  if (first === "nothing found") return;
  const waiting = new AbortController();
  await Promise.race([both, pause(otherKindMs, waiting.signal)]);
  waiting.abort();
}

/**
 * The codes of what goes wrong with a name. They are our own, since a name server that refuses a
 * connection must not be taken for a target that does.
 */
export const lookupCodes = {
  notFound: "ERR_NAME_NOT_FOUND",
  failed: "ERR_NAME_LOOKUP_FAILED",
  timedOut: "ERR_NAME_LOOKUP_TIMED_OUT",
  notAllowed: "ERR_ADDRESS_NOT_ALLOWED",
} as const;

/** A name does not lead to where a connection could be made. */
export class NameLookupError extends Error {
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
 * The look-up that connections are made with: they go to the very addresses that were checked, and
 * nothing asks a second time. One address that is not allowed refuses the name, since who sets such
 * names has something in mind.
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

/** In the codes of `node:dns`, which are those of the name servers and of the system's look-up. */
function codeOf(cause: unknown): NameLookupError["code"] {
  if (!(cause instanceof Error) || !("code" in cause)) return lookupCodes.failed;
  if (cause.code === NOTFOUND || cause.code === NODATA) return lookupCodes.notFound;
  return cause.code === TIMEOUT ? lookupCodes.timedOut : lookupCodes.failed;
}
