import { authorized, jsonRequest, numberMark, type RequestPlan } from "../http/requests.ts";
import { type User, userNamed } from "./targeted-flags.ts";

/** A form of request with a user context. Every request is from a new user. */
export type Way = {
  name: string;
  plan(user: User, key: string): RequestPlan;
  /** Attributes that the request contains. */
  sends: "all" | "id";
  /** All flags by default. */
  answers?: "one flag";
};

const method = "GET";
const flagsPath = "/api/v1/sdk/flags";
const valuesPath = "/api/v1/sdk/values";

export const allFlags = (key: string): RequestPlan => ({
  ...{ method, path: flagsPath, headers: authorized(key) },
});

export const contextHeader = withContextHeader("X-User-Context", flagsPath);

export const typedValues = withContextHeader("values in their types", valuesPath);

function withContextHeader(name: string, path: string): Way {
  return {
    name,
    sends: "all",
    plan(user, key) {
      const headers = { ...authorized(key), "X-User-Context": JSON.stringify(user) };
      return { method, path, headers };
    },
  };
}

export const userIdQuery: Way = {
  name: "?user_id=",
  sends: "id",
  plan: ({ user_id }, key) => ({ ...allFlags(key), path: `${flagsPath}?user_id=${user_id}` }),
};

export const postedUser: Way = {
  name: "POST",
  sends: "all",
  plan: ({ user_id: id, ...attributes }, key) =>
    posted(flagsPath, key, { user: { id, attributes } }),
};

export const ofrepBulk = ofrep("OFREP", "/ofrep/v1/evaluate/flags");

/** One flag: a small response to a request with a body. */
export const ofrepSingle = (flagKey: string): Way => ({
  ...ofrep("one flag by OFREP", `/ofrep/v1/evaluate/flags/${flagKey}`),
  answers: "one flag",
});

function ofrep(name: string, path: string): Way {
  return {
    name,
    sends: "all",
    plan: ({ user_id: targetingKey, ...attributes }, key) =>
      posted(path, key, { context: { targetingKey, ...attributes } }),
  };
}

const posted = (path: string, key: string, body: object) =>
  jsonRequest(key, { method: "POST", path, body });

/** Number of distinct users without their ids. Each request has another number in the id. */
const kindsOfUser = 48;

/** Returns requests that are sent in turn, each with another user. */
export function plansOf(way: Way, key: string): RequestPlan[] {
  return Array.from({ length: kindsOfUser }, (_, kind) =>
    way.plan(userNamed(`user-${numberMark}`, kind), key),
  );
}
