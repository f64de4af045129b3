import { numberMark, type RequestPlan } from "../http/load.ts";
import { type User, userNamed } from "./users.ts";

/** How an SDK says who is asking. Every request comes from a user who has never asked before. */
export type Way = {
  name: string;
  plan(user: User, key: string): RequestPlan;
  /** What it says of the user; the rest of the attributes is missing. */
  tells: "all" | "id";
  /** All flags unless it says otherwise. */
  answers?: "one flag";
};

const flagsPath = "/api/v1/sdk/flags";

export const contextHeader: Way = {
  name: "X-User-Context",
  tells: "all",
  plan: (user, key) => ({
    method: "GET",
    path: flagsPath,
    headers: { ...authorized(key), "X-User-Context": JSON.stringify(user) },
  }),
};

export const userIdQuery: Way = {
  name: "?user_id=",
  tells: "id",
  plan: (user, key) => ({
    method: "GET",
    path: `${flagsPath}?user_id=${user.user_id}`,
    headers: authorized(key),
  }),
};

export const postedUser: Way = {
  name: "POST",
  tells: "all",
  plan: ({ user_id: id, ...attributes }, key) =>
    posted(flagsPath, key, { user: { id, attributes } }),
};

export const ofrepBulk: Way = {
  name: "OFREP",
  tells: "all",
  plan: ({ user_id: targetingKey, ...attributes }, key) =>
    posted("/ofrep/v1/evaluate/flags", key, { context: { targetingKey, ...attributes } }),
};

/** One flag, which is a small answer to a request with a body. */
export const ofrepSingle = (flagKey: string): Way => ({
  ...ofrepBulk,
  name: "one flag by OFREP",
  answers: "one flag",
  plan: ({ user_id: targetingKey, ...attributes }, key) =>
    posted(`/ofrep/v1/evaluate/flags/${flagKey}`, key, {
      context: { targetingKey, ...attributes },
    }),
});

/** So many kinds of user; each request has a number of its own in the id. */
const kindsOfUser = 48;

/** Requests to be sent in turn, of which no two name the same user. */
export function plansOf(way: Way, key: string): RequestPlan[] {
  return Array.from({ length: kindsOfUser }, (_, kind) =>
    way.plan(userNamed(`user-${numberMark}`, kind), key),
  );
}

function posted(path: string, key: string, body: object): RequestPlan {
  const headers = { ...authorized(key), "Content-Type": "application/json" };
  return { method: "POST", path, headers, body: JSON.stringify(body) };
}

function authorized(key: string) {
  return { Authorization: `Bearer ${key}` };
}
