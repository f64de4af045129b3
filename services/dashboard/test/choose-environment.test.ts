import { describe, expect, it } from "@jest/globals";
import type { ServerKeyIdentity } from "../src/api/schema.d.ts";
import { type Chosen, chooseEnvironment } from "../src/session/choose-environment.ts";

type Me = Pick<ServerKeyIdentity, "environments" | "key">;

/** The identity of a key of the environment `p`, with environments by their ids and names. */
const meWith = (names: Readonly<Record<string, string>>): Me =>
  ({
    key: { environment_id: "p" },
    environments: Object.entries(names).map(([id, name]) => ({ id, name })),
  }) as unknown as Me;
const before = meWith({ p: "production", s: "staging" });
const choose = (name: string | undefined, me = before): Chosen =>
  chooseEnvironment(undefined, { name, me, isHeld: false });

describe("the environment of the pages", () => {
  it("is that of the key without a name in the address", () => {
    expect(choose(undefined)).toMatchObject({ kind: "found", environment: { id: "p" } });
  });

  it("is the one with the name, or unknown", () => {
    expect(choose("staging")).toMatchObject({ kind: "found", environment: { id: "s" } });
    expect(choose("preview")).toEqual({ kind: "unknown", name: "preview" });
  });

  it("stays the same after a rename, even if another environment gets its name", () => {
    const me = meWith({ p: "staging", s: "former" });
    const chosen = chooseEnvironment(choose("staging"), { name: "staging", me, isHeld: false });
    expect(chosen).toMatchObject({ kind: "found", environment: { id: "s", name: "former" } });
  });

  it("is another one when the address names another one", () => {
    const chosen = chooseEnvironment(choose("staging"), {
      name: "production",
      me: before,
      isHeld: true,
    });
    expect(chosen).toMatchObject({ kind: "found", environment: { id: "p" } });
  });

  it("stays after its deletion while there is unsaved content, and is unknown afterwards", () => {
    const me = meWith({ p: "production" });
    const held = chooseEnvironment(choose("staging"), { name: "staging", me, isHeld: true });
    expect(held).toMatchObject({ kind: "deleted", environment: { id: "s", name: "staging" } });
    const left = chooseEnvironment(held, { name: "staging", me, isHeld: false });
    expect(left).toEqual({ kind: "unknown", name: "staging" });
  });

  it("is found when an unknown one is created", () => {
    const me = meWith({ p: "production", n: "preview" });
    const chosen = chooseEnvironment(choose("preview"), { name: "preview", me, isHeld: false });
    expect(chosen).toMatchObject({ kind: "found", environment: { id: "n" } });
  });

  it("is the same object while nothing changes, so that no page renders again", () => {
    for (const name of [undefined, "staging", "preview"]) {
      const first = choose(name);
      expect(chooseEnvironment(first, { name, me: before, isHeld: false })).toBe(first);
    }
  });
});
