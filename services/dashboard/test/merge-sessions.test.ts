import { expect, it } from "@jest/globals";
import type { KeySession } from "../src/session/session.tsx";
import { mergeSessions } from "../src/session/use-fresh-roles.ts";

const sessionOf = (user: string, environment: string, api: object) =>
  ({
    ...{ token: "project", api },
    me: { user: { id: user }, key: { environment_id: environment } },
  }) as unknown as KeySession;

const [first, second] = [{}, {}];
const known = sessionOf("ada", "staging", first);

it("keeps the client while the same person signs in again", () => {
  const [merged] = mergeSessions([known], [sessionOf("ada", "staging", second)]);
  expect(merged?.api).toBe(first);
});

it.each([
  ["person", sessionOf("ben", "staging", second)],
  ["environment", sessionOf("ada", "production", second)],
])("takes the session of another %s as it is", (_, other) => {
  expect(mergeSessions([known], [other])).toEqual([other]);
  expect(mergeSessions([known], [other])[0]?.api).toBe(second);
});
