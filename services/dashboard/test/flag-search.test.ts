import { describe, expect, it } from "@jest/globals";
import {
  type FlagSearch,
  filterFlags,
  type ListedFlag,
  ownersOf,
  readFlagSearch,
  sortFlags,
  tagsOf,
} from "../src/flags/flag-search.ts";
import { hasSameSettings, tagsFrom, tagsProblem } from "../src/flags/flag-settings.ts";
import { flag } from "./listed-flag.ts";

const flags = [
  flag("a", { tags: ["beta", "shop"], owner: "Team Shop", name: "Zebra" }),
  flag("b", { archived_at: "2027-02-01T00:00:00.000Z", tags: ["beta"] }),
  flag("c", { last_evaluated_at: "2027-03-01T00:00:00.000Z", owner: "Ada" }),
  flag("d", { last_evaluated_at: "2027-02-01T00:00:00.000Z" }),
];
const keys = (found: readonly ListedFlag[]) => found.map(({ key }) => key).join("");
const found = (search: FlagSearch) =>
  keys(filterFlags(flags, search, { environmentId: "e1", staleIds: undefined }));

describe("the filters of the list of flags", () => {
  it.each<[FlagSearch, string]>([
    [{}, "acd"],
    [{ archived: "only" }, "b"],
    [{ archived: "with" }, "abcd"],
    [{ tag: "beta" }, "a"],
    [{ tag: "beta", archived: "with" }, "ab"],
    [{ owner: "Ada" }, "c"],
    [{ q: "team shop" }, "a"],
    [{ q: "beta" }, "a"],
    [{ state: "on" }, ""],
  ])("find with %j: %s", (search, expected) => {
    expect(found(search)).toBe(expected);
  });

  it("are read from the address, without values that the list does not know", () => {
    const search = { tag: 7, owner: "Ada", archived: "only", sort: "-updated_at" };
    expect(readFlagSearch(search)).toMatchObject({ ...search, tag: "7" });
    const unknown = readFlagSearch({ tag: "", archived: "yes", sort: "size", q: {} });
    expect(Object.values(unknown)).toEqual(Object.values(unknown).map(() => undefined));
  });

  it("offer the tags and owners of the flags", () => {
    expect([tagsOf(flags), ownersOf(flags)]).toEqual([
      ["beta", "shop"],
      ["Ada", "Team Shop"],
    ]);
  });
});

describe("the orders of the list of flags", () => {
  it.each([
    [undefined, "abcd"],
    ["-key", "dcba"],
    ["name", "bcda"],
    ["-name", "adcb"],
    ["last_evaluated_at", "abdc"],
    ["-last_evaluated_at", "cdab"],
    ["-created_at", "abcd"],
  ] as const)("put the flags for %s into the order %s", (order, expected) => {
    expect(keys(sortFlags(flags, order))).toBe(expected);
  });
});

describe("the tags of a flag", () => {
  it("are spelled and ordered as the API stores them", () => {
    expect(tagsFrom(["Shop", "Team A", "beta", "shop"])).toEqual(["beta", "shop", "team-a"]);
  });

  it("are checked before they are sent", () => {
    expect(tagsProblem(["team:a", "b_2"])).toBeUndefined();
    expect(tagsProblem(["größe"])).toContain("größe");
    expect(tagsProblem(Array.from({ length: 21 }, (_, index) => `t${index}`))).toContain("20");
  });

  it("differ only by their values", () => {
    expect(hasSameSettings(flag("a", { tags: ["x"] }), flag("a", { tags: ["x"] }))).toBe(true);
    expect(hasSameSettings(flag("a", { tags: ["x"] }), flag("a"))).toBe(false);
  });
});
