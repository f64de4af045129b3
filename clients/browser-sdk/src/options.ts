import type { Context } from "./context.ts";
import type { Declaration, FallbackOf, KeyOf } from "./declared-flags.ts";
import { createProblemLog, type Logger, type ProblemLog } from "./problem.ts";
import { browserStorage, type ValueStorage } from "./stored-values.ts";
import {
  type Evaluated,
  type InitialValue,
  readInitialValues,
  type Values,
} from "./typed-values.ts";

export type ClientOptions<Flags extends Declaration = string> = {
  /** Address of Halyard, such as `https://flags.example.com`. */
  baseUrl: string;
  /** A client key (`hc_…`). It is public: everybody who opens the page can read it. */
  clientKey: string;
  /** The user. Default: a user without attributes. */
  context?: Context | undefined;
  /** Values of this user that came with the page. They take precedence over stored ones. */
  bootstrap?: InitialValues<Flags> | undefined;
  /** Storage for the last values. Default: `localStorage`. False: none. */
  storage?: ValueStorage | false | undefined;
  /** Default: the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** Receives one line for each kind of problem. Default: the console. */
  logger?: Logger | undefined;
  /** False: the client answers from `bootstrap` and the storage until `connect` is called. Default: true. */
  autoConnect?: boolean | undefined;
};

/** Values by key, in the types of their flags. */
export type InitialValues<Flags extends Declaration = string> = {
  readonly [Key in KeyOf<Flags>]?: InitialValueOf<Flags, Key> | undefined;
};

/** An object is not short for anything: it has its variation beside it. */
export type InitialValueOf<Flags extends Declaration, Key> = Extract<
  InitialValue,
  Evaluated | FallbackOf<Flags, Key>
>;

export type ReadOptions = {
  baseUrl: string;
  clientKey: string;
  context: unknown;
  bootstrap: Values | undefined;
  storage: ValueStorage | undefined;
  fetch: typeof fetch;
  log: ProblemLog;
  autoConnect: boolean;
  /** The reason why the client cannot connect. */
  problem: string | undefined;
};

/** Reads options. JavaScript applications may pass values of any type. */
export function readOptions(options: ClientOptions): ReadOptions {
  const given = (options ?? {}) as Partial<ClientOptions>;
  const { context, bootstrap, storage, logger, autoConnect = true } = given;
  const baseUrl = textOf(given.baseUrl).replace(/\/+$/, "");
  const clientKey = textOf(given.clientKey);
  const log = createProblemLog(logger ?? console);
  return {
    ...{ baseUrl, clientKey, context, autoConnect, log },
    bootstrap: readInitialValues(bootstrap, log),
    storage: storage === false ? undefined : (storage ?? browserStorage()),
    // The global function is read for each request, because tools replace it after the client was created.
    fetch: given.fetch ?? ((...request) => fetch(...request)),
    problem: problemOf(baseUrl, clientKey),
  };
}

/** Returns a text as it is, and everything else as an empty text. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function problemOf(baseUrl: string, clientKey: string): string | undefined {
  if (!/^https?:\/\/[^/]/.test(baseUrl)) return "Invalid `baseUrl`: expected https://.";
  if (/^h[rs]_/.test(clientKey))
    return "Invalid `clientKey`: a server key. Revoke it: pages are public.";
  if (!/^hc_[^\W_]+_[\w-]+$/.test(clientKey)) return "Invalid `clientKey`: expected hc_.";
  return undefined;
}

/** Returns the part of a key that identifies it. */
export function keyIdOf(clientKey: string): string {
  return clientKey.split("_")[1] ?? "";
}
