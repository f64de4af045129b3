import { describe, expect, it } from "@jest/globals";
import {
  type BulkChange,
  batchesOf,
  bulkText,
  changedFlags,
  requestOf,
} from "../src/flag-list/bulk-change.ts";
import { idsBetween } from "../src/flag-list/use-selection.ts";
import { flag } from "./listed-flag.ts";

const flags = [
  flag("a", { tags: ["beta"], owner: "Ada" }),
  flag("b", { archived_at: "2027-01-01T00:00:00.000Z" }),
  flag("c", { tags: ["beta", "shop"] }),
];

describe("a change of several flags", () => {
  it.each<[BulkChange, changed: string, text: string, request: object | undefined]>([
    [{ kind: "archive" }, "ac", "Archives 2 flags", { archived: true }],
    [{ kind: "restore" }, "b", "Restores 1 flag", { archived: false }],
    [{ kind: "owner", owner: " Ada " }, "bc", "Sets the owner of 2 flags to Ada", { owner: "Ada" }],
    [{ kind: "owner", owner: "" }, "a", "Removes the owner of 1 flag", { owner: null }],
    [
      { kind: "add_tags", tags: ["beta"] },
      "b",
      "Adds the tag beta to 1 flag",
      { add_tags: ["beta"] },
    ],
    [
      { kind: "remove_tags", tags: ["beta", "x"] },
      "ac",
      "Removes the tags beta, x from 2 flags",
      { remove_tags: ["beta", "x"] },
    ],
    [{ kind: "add_tags", tags: [] }, "", "Adds the tags  to 0 flags", undefined],
  ])("with %j changes the flags %s", (change, expected, text, request) => {
    const changed = changedFlags(flags, change);
    expect(changed.map(({ key }) => key).join("")).toBe(expected);
    expect(bulkText(change, changed.length)).toBe(text);
    expect(requestOf(change)).toEqual(request);
  });

  it("is sent in batches of 200", () => {
    const ids = Array.from({ length: 401 }, (_, index) => index);
    expect(batchesOf(ids).map(({ length }) => length)).toEqual([200, 200, 1]);
    expect(batchesOf([])).toEqual([]);
  });
});

describe("the selection of a range", () => {
  const shown = ["a", "b", "c", "d"].map((id) => ({ id }));

  it("works in both directions", () => {
    expect(idsBetween(shown, "b", "d")).toEqual(["b", "c", "d"]);
    expect(idsBetween(shown, "d", "b")).toEqual(["b", "c", "d"]);
  });

  it("is one flag if the first one is not listed any more", () => {
    expect(idsBetween(shown, undefined, "c")).toEqual(["c"]);
    expect(idsBetween(shown, "gone", "c")).toEqual(["c"]);
  });
});
