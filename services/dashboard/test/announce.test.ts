import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import type { AuditedChange, ServerKeyIdentity } from "../src/api/schema.d.ts";
import { createAnnouncer } from "../src/live/announce.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const me = {
  user: { id: "me" },
  environments: [{ id: "production-id", name: "production" }],
} as ServerKeyIdentity;

const change = (flagKey: string | null, email = "ada@example.com", others: object = {}) =>
  ({
    ...{ action: "created", change_type: "manual", environment_id: "production-id" },
    ...{ flag_key: flagKey, actor: { id: email, email }, before: null, after: { name: "Beta" } },
    ...others,
  }) as unknown as AuditedChange;

function open() {
  const texts: string[] = [];
  const { take, stop } = createAnnouncer(me, (text) => texts.push(text));
  return { texts, stop, takeAll: (changes: readonly AuditedChange[]) => changes.forEach(take) };
}

function announced(changes: readonly AuditedChange[]): readonly string[] {
  const { takeAll, texts } = open();
  takeAll(changes);
  jest.runAllTimers();
  return texts;
}

const key = (name: string, email?: string) =>
  change(null, email, { action: "key_issued", after: { name } });

it.each<[string, readonly AuditedChange[], readonly string[]]>([
  ["one change as it is", [change("a")], ["ada@example.com created a"]],
  [
    "changes of several flags",
    [change("a"), change("b")],
    ["2 flags were changed by ada@example.com"],
  ],
  [
    "several changes of one flag",
    [change("a"), change("a", "ada@example.com", { action: "deleted" })],
    ["a was changed 2 times by ada@example.com"],
  ],
  [
    "the deletion of a flag in each environment as one change",
    ["production-id", "staging-id"].map((environment_id) =>
      change("a", "ada@example.com", { action: "deleted", environment_id }),
    ),
    ["ada@example.com deleted a"],
  ],
  [
    "changes of flags and of other things",
    [change("a"), key("Laptop")],
    ["2 changes were made by ada@example.com"],
  ],
  [
    "the changes of each person",
    [change("a"), change("b", "grace@example.com")],
    ["ada@example.com created a", "grace@example.com created b"],
  ],
  [
    "the changes of many people together",
    ["ada", "grace", "alan", "edsger"].map((name) => change(name, name)),
    ["4 flags were changed by 4 people"],
  ],
])("announces %s", (_, changes, expected) => {
  expect(announced(changes)).toEqual(expected);
});

it("does not announce my own changes", () => {
  const mine = change("a", "me");
  expect(announced([{ ...mine, actor: { ...mine.actor, id: "me" } }])).toEqual([]);
});

it("announces the first change soon, and groups those that follow it", () => {
  const { takeAll, texts } = open();
  takeAll([change("a")]);
  jest.advanceTimersByTime(1_000);
  expect(texts).toHaveLength(1);
  for (let index = 0; index < 5; index += 1) {
    takeAll([change(`flag-${index}`)]);
    jest.advanceTimersByTime(700);
  }
  jest.runAllTimers();
  expect(texts.slice(1)).toEqual(["5 flags were changed by ada@example.com"]);
});
