import { numberMark, type RequestPlan } from "../http/load.ts";
import { type User, userNamed } from "./users.ts";

/** A form of request with a user context. Every request is from a new user. */
export type Way = {
  name: string;
  plan(user: User, key: string): RequestPlan;
  /** Attributes that the request contains. */
  sends: "all" | "id";
  /** All flags by default. */
  answers?: "one flag";
};

const flagsPath = "/api/v1/sdk/flags";

export const contextHeader: Way = {
  name: "X-User-Context",
  sends: "all",
  plan: (user, key) => ({
    method: "GET",
    path: flagsPath,
    headers: { ...authorized(key), "X-User-Context": JSON.stringify(user) },
  }),
};

export const userIdQuery: Way = {
  name: "?user_id=",
  sends: "id",
  plan: (user, key) => ({
    method: "GET",
    path: `${flagsPath}?user_id=${user.user_id}`,
    headers: authorized(key),
  }),
};

export const postedUser: Way = {
  name: "POST",
  sends: "all",
  plan: ({ user_id: id, ...attributes }, key) =>
    posted(flagsPath, key, { user: { id, attributes } }),
};

export const ofrepBulk: Way = {
  name: "OFREP",
  sends: "all",
  plan: ({ user_id: targetingKey, ...attributes }, key) =>
    posted("/ofrep/v1/evaluate/flags", key, { context: { targetingKey, ...attributes } }),
};

/** One flag: a small response to a request with a body. */
export const ofrepSingle = (flagKey: string): Way => ({
  ...ofrepBulk,
  name: "one flag by OFREP",
  answers: "one flag",
  plan: ({ user_id: targetingKey, ...attributes }, key) =>
    posted(`/ofrep/v1/evaluate/flags/${flagKey}`, key, {
      context: { targetingKey, ...attributes },
    }),
});

/** Number of distinct users without their ids. Each request has another number in the id. */
const kindsOfUser = 48;

/** Returns requests that are sent in turn, each with another user. */
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
