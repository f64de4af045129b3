import { type LookupAddress, type LookupOptions, NODATA, NOTFOUND, TIMEOUT } from "node:dns";
import type { ResolveName } from "./resolve-name.ts";

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
