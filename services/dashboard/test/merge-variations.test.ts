import { describe, expect, it } from "@jest/globals";
import {
  decided,
  mergedWith,
  openConflicts,
  startOf,
  type Variations,
} from "../src/variations/merge-variations.ts";
import type { TypedValueType, VariationDraft } from "../src/variations/variation-drafts.ts";

/** Variations by key. A value is the text in JSON, and a name can follow it. */
type Given = Readonly<Record<string, string | readonly [json: string, name: string]>>;

const storedAs = (given: Given, version: number): Variations => ({
  version,
  stored: Object.entries(given).map(([key, value]) => {
    const [json, name] = typeof value === "string" ? [value, ""] : value;
    return { key, name, json };
  }),
});

/** Edits drafts so that they have the given variations. Those with the same key keep their identity. */
const editedAs = (given: Given, drafts: readonly VariationDraft[]): VariationDraft[] =>
  Object.entries(given).map(([key, value]) => {
    const [text, name] = typeof value === "string" ? [value, ""] : value;
    const former = drafts.find((draft) => draft.key === key) ?? { uid: `new ${key}`, key };
    return { ...former, text, name };
  });

type Row = { base: Given; mine: Given; theirs: Given };

function merge({ base, mine, theirs }: Row, type: TypedValueType = "number") {
  const started = startOf(type, storedAs(base, 1));
  const edited = { ...started, drafts: editedAs(mine, started.drafts) };
  const merged = mergedWith(type, edited, storedAs(theirs, 2));
  return { merged, shown: shown(merged.drafts), conflicts: openConflicts(type, merged) };
}

const shown = (drafts: readonly VariationDraft[]): string =>
  drafts.map(({ key, text, name }) => `${key}=${text}${name && ` ${name}`}`).join(", ");

describe("two people's edits of variations", () => {
  const base = { blue: "1", red: "2" };

  it.each<[string, Row, string]>([
    [
      "of different variations are both kept",
      { base, mine: { blue: "10", red: "2" }, theirs: { blue: "1", red: "20" } },
      "blue=10, red=20",
    ],
    [
      "of the name and the value of one variation are both kept",
      { base, mine: { blue: ["1", "Navy"], red: "2" }, theirs: { blue: "10", red: "2" } },
      "blue=10 Navy, red=2",
    ],
    [
      "to the same value are no conflict",
      { base, mine: { blue: "10", red: "2" }, theirs: { blue: "10", red: "2" } },
      "blue=10, red=2",
    ],
    [
      "that add variations keep both additions",
      { base, mine: { ...base, grey: "3" }, theirs: { ...base, green: "4" } },
      "blue=1, red=2, grey=3, green=4",
    ],
    [
      "that add the same variation keep one",
      { base, mine: { ...base, grey: "3" }, theirs: { ...base, grey: "3" } },
      "blue=1, red=2, grey=3",
    ],
    [
      "that remove different variations remove both",
      {
        base: { ...base, grey: "3" },
        mine: { red: "2", grey: "3" },
        theirs: { blue: "1", grey: "3" },
      },
      "grey=3",
    ],
    [
      "keep their order beside my value",
      { base, mine: { blue: "1", red: "20" }, theirs: { red: "2", blue: "1" } },
      "red=20, blue=1",
    ],
    [
      "keep a member with the name of a prototype",
      { base, mine: { ...base, constructor: "3" }, theirs: { blue: "10", red: "2" } },
      "blue=10, red=2, constructor=3",
    ],
  ])("%s", (_, row, text) => {
    const result = merge(row);
    expect(result.shown).toBe(text);
    expect(result.conflicts).toEqual([]);
  });

  it.each<[string, Row, { mine: string; theirs: string }]>([
    [
      "the same value is changed",
      { base, mine: { blue: "10", red: "2" }, theirs: { blue: "11", red: "20" } },
      { mine: "blue=10, red=20", theirs: "blue=11, red=20" },
    ],
    [
      "I removed what they changed",
      { base, mine: { red: "2" }, theirs: { blue: "11", red: "2" } },
      { mine: "red=2", theirs: "red=2, blue=11" },
    ],
    [
      "they removed what I changed",
      { base, mine: { blue: "10", red: "2" }, theirs: { red: "2" } },
      { mine: "blue=10, red=2", theirs: "red=2" },
    ],
    [
      "both add a variation with different values",
      { base: { red: "2" }, mine: { red: "2", blue: "10" }, theirs: { red: "2", blue: "11" } },
      { mine: "red=2, blue=10", theirs: "red=2, blue=11" },
    ],
  ])("are a conflict that names the variation if %s", (_, row, { mine, theirs }) => {
    const { merged, conflicts, shown: kept } = merge(row);
    expect(conflicts.map(({ key }) => key)).toEqual(["blue"]);
    expect(kept).toBe(mine);
    const [conflict] = conflicts;
    if (conflict === undefined) throw new Error("there is no conflict");
    const taken = decided(merged, conflict, "theirs");
    expect(shown(taken.drafts)).toBe(theirs);
    expect(openConflicts("number", decided(merged, conflict, "mine"))).toEqual([]);
    expect(openConflicts("number", taken)).toEqual([]);
  });

  it("keep my name where only the value is a conflict", () => {
    const row: Row = {
      base,
      mine: { blue: ["10", "Navy"], red: "2" },
      theirs: { blue: "11", red: "2" },
    };
    const { merged, conflicts } = merge(row);
    const [conflict] = conflicts;
    if (conflict === undefined) throw new Error("there is no conflict");
    expect(shown(decided(merged, conflict, "theirs").drafts)).toBe("blue=11 Navy, red=2");
  });

  it("of an object do not conflict over white space", () => {
    const row = { base: { a: '{"x":1}' }, mine: { a: '{ "x": 2 }' }, theirs: { a: '{"x":2}' } };
    expect(merge(row, "object").conflicts).toEqual([]);
  });

  it("end a conflict when the person enters the same value as the other one", () => {
    const { merged } = merge({
      base,
      mine: { ...base, blue: "10" },
      theirs: { ...base, blue: "11" },
    });
    const drafts = editedAs({ ...base, blue: "11" }, merged.drafts);
    expect(openConflicts("number", { ...merged, drafts })).toEqual([]);
  });

  it("keep rows whose keys are not entered yet, and their identities", () => {
    const started = startOf("number", storedAs(base, 1));
    const row = (uid: string) => ({ uid, key: "", name: "", text: uid });
    const edited = { ...started, drafts: [...started.drafts, row("7"), row("8")] };
    const merged = mergedWith("number", edited, storedAs({ ...base, red: "20" }, 2));
    expect(shown(merged.drafts)).toBe("blue=1, red=20, =7, =8");
    expect(merged.drafts.map(({ uid }) => uid)).toEqual(edited.drafts.map(({ uid }) => uid));
  });

  it("stay a conflict while a third version changes another variation", () => {
    const { merged } = merge({
      base,
      mine: { ...base, blue: "10" },
      theirs: { ...base, blue: "11" },
    });
    const third = mergedWith("number", merged, storedAs({ blue: "11", red: "20" }, 3));
    expect(shown(third.drafts)).toBe("blue=10, red=20");
    expect(openConflicts("number", third).map(({ key }) => key)).toEqual(["blue"]);
  });
});
