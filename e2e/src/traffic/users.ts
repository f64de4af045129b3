import { bucketOf } from "@halyard/evaluation";
import { type Called, type CallOptions, call } from "@halyard/testing";
import { headerBytes } from "./raw-request.ts";

/** Users of tests, and the ways in which an SDK sends a user. */
export type User = Record<string, unknown>;

/** The parts of a request that contain the user. */
export type Said = Pick<CallOptions, "method" | "headers" | "body"> & { query?: string };

const percent = 100;
const wholeBucket = 10_000;

/** Returns the first id whose bucket for a flag is at least `from` percent and less than `to` percent. */
export function idBetween(flagKey: string, from: number, to: number): string {
  for (let number = 0; number < wholeBucket; number += 1) {
    const id = `user-${number}`;
    const bucket = bucketOf(flagKey, id);
    if (bucket >= from * percent && bucket < to * percent) return id;
  }
  throw new Error(`no id between ${from} and ${to} percent of ${flagKey}`);
}

const json = (user: User) => JSON.stringify(user);
const base64 = (user: User, encoding: "base64" | "base64url") =>
  Buffer.from(json(user)).toString(encoding);

/** The four ways to send a user with an id and text attributes, with the variants of each. */
export const ways: readonly [way: string, say: (user: User) => Said][] = [
  ["a body", (user) => ({ method: "POST", body: user })],
  [
    "a body with a user in it",
    ({ id, ...attributes }) => ({ method: "POST", body: { user: { id, attributes } } }),
  ],
  ["X-User-Context", (user) => ({ headers: { "x-user-context": headerBytes(json(user)) } })],
  [
    "X-User-Context in base64",
    (user) => ({ headers: { "x-user-context": base64(user, "base64") } }),
  ],
  [
    "X-User-Context in base64url",
    (user) => ({ headers: { "x-user-context": base64(user, "base64url") } }),
  ],
  [
    "X-User-ID and X-User-Attributes",
    ({ id, ...attributes }) => ({
      headers: { "x-user-id": headerBytes(String(id)), "x-user-attributes": listOf(attributes) },
    }),
  ],
  [
    "user_id in the query and X-User-Attributes",
    ({ id, ...attributes }) => ({
      query: `user_id=${encodeURIComponent(String(id))}`,
      headers: { "x-user-attributes": listOf(attributes) },
    }),
  ],
];

function listOf(attributes: User): string {
  return headerBytes(
    Object.entries(attributes)
      .map(([name, value]) => `${name}=${value}`)
      .join(","),
  );
}

/** Reads the values of all flags. */
export function askFlags(url: string, key: string, said: Said = {}): Promise<Called> {
  const { query = "", ...options } = said;
  return call(`${url}/api/v1/sdk/flags?${query}`, { ...options, key });
}

/** Reads the value of one flag. */
export function askEvaluate(url: string, key: string, flag: string): Promise<Called> {
  return call(`${url}/api/v1/sdk/evaluate?key=${flag}`, { key });
}

/** Sends the user in the header that accepts all attributes. */
export function asContext(user: User): Said {
  return { headers: { "x-user-context": headerBytes(json(user)) } };
}
