import type { SnapshotEntry } from "@halyard/contracts";
import { contextOf } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import type { EnvironmentView } from "../../src/answers/environment-view.ts";
import { createEnvironmentViews, deriveView } from "../../src/answers/environment-views.ts";
import { typedValuesFor, writerOf } from "../../src/answers/typed-values.ts";
import { buildSnapshot, takeEntries } from "../../src/snapshot/snapshot.ts";
import { deletedFlag, flagEntry, id, splitOf, typedFlag } from "../builders.ts";

const env = id("env");
const none = new Set<string>();
const color = (version: number, blue = "blue") =>
  typedFlag(
    "string",
    { blue: JSON.stringify(blue), red: '"red"' },
    { flag_id: id("flag", 1), key: "color", version, serve: splitOf({ blue: 50, red: 50 }) },
  );
const checkout = (version: number, enabled: boolean) =>
  flagEntry({ flag_id: id("flag", 2), key: "checkout", version, enabled });
const users = Array.from({ length: 20 }, (_, index) => contextOf({ id: `user-${index}` }));
const bodiesOf = (view: EnvironmentView) => users.map((user) => typedValuesFor(view, user).body);

/** Returns the views before and after a change, and the view that is prepared for the new flags alone. */
function viewsAround(...changed: SnapshotEntry[]) {
  const snapshot = buildSnapshot(id("epoch"), [color(1), checkout(1, false)]);
  const views = createEnvironmentViews();
  const replaced = { environments: new Set([env]), keys: none, organizations: none };
  const changes = { ...replaced, audiences: none };
  views.update({ snapshot, changed: changes, isReplacement: true, taken: [] });
  const before = views.of(env);
  bodiesOf(before);
  views.update({ snapshot, isReplacement: false, ...takeEntries(snapshot, changed) });
  return { before, after: views.of(env), alone: deriveView(snapshot.environments.get(env)) };
}

describe("the writer of values", () => {
  it("is kept when a boolean flag changes", () => {
    const { before, after } = viewsAround(checkout(2, true));
    expect(after).not.toBe(before);
    expect(writerOf(after)).toBe(writerOf(before));
  });

  it.each<[string, SnapshotEntry]>([
    ["a typed flag changes", color(2, "navy")],
    ["a flag is added", flagEntry({ flag_id: id("flag", 3), key: "zulu" })],
    ["a typed flag is deleted", deletedFlag(2, id("flag", 1))],
  ])("is replaced when %s", (_, changed) => {
    const { before, after } = viewsAround(changed);
    const earlier = writerOf(before);
    expect(writerOf(after)).not.toBe(earlier);
  });

  it.each<[string, SnapshotEntry]>([
    ["a boolean flag changes", checkout(2, true)],
    ["a typed flag changes", color(2, "navy")],
    ["a flag is added", flagEntry({ flag_id: id("flag", 3), key: "zulu", enabled: true })],
  ])("writes what a new one would write after %s", (_, changed) => {
    const { after, alone } = viewsAround(changed);
    expect(bodiesOf(after)).toEqual(bodiesOf(alone));
  });
});
