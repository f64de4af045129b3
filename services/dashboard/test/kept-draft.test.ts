import { expect, it } from "@jest/globals";
import { draftOf } from "../src/targeting/draft.ts";
import { draftKey, readDraft, type Started, writeDraft } from "../src/targeting/kept-draft.ts";

const key = draftKey({ flag: { id: "checkout-id" }, environment: { id: "production-id" } });
const draft = draftOf({ enabled: true, rollout_percentage: 40, targeting_rules: [] });
const started: Started = { draft, base: draft, version: 3, undecided: [], firstBase: undefined };

/** A storage with a quota, in characters. */
function createStorage(quota = 1_000): Storage {
  const entries = new Map<string, string>();
  return {
    getItem: (name: string) => entries.get(name) ?? null,
    removeItem: (name: string) => void entries.delete(name),
    setItem(name: string, value: string) {
      if (value.length > quota) throw new DOMException("full", "QuotaExceededError");
      entries.set(name, value);
    },
  } as unknown as Storage;
}

it("returns the draft of the same flag and environment", () => {
  const storage = createStorage();
  writeDraft(storage, key, started);
  expect(readDraft(storage, key)).toEqual(started);
  const other = draftKey({ flag: { id: "checkout-id" }, environment: { id: "staging-id" } });
  expect(readDraft(storage, other)).toBeUndefined();
});

it("returns nothing after the draft was removed", () => {
  const storage = createStorage();
  writeDraft(storage, key, started);
  writeDraft(storage, key, undefined);
  expect(readDraft(storage, key)).toBeUndefined();
});

it("returns no older draft if a newer one exceeds the quota", () => {
  const storage = createStorage(JSON.stringify(started).length);
  writeDraft(storage, key, started);
  writeDraft(storage, key, { ...started, version: 1_000_000 });
  expect(readDraft(storage, key)).toBeUndefined();
});

it.each(["{", "3", '{"draft":{}}'])("ignores %s, which is no draft", (text) => {
  const storage = createStorage();
  storage.setItem(key, text);
  expect(readDraft(storage, key)).toBeUndefined();
});
