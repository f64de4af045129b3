import { describe, expect, it } from "@jest/globals";
import { maxWaitMs, nextLinkState, type Resolved } from "../../src/answers/link-state.ts";

describe("given a flag that lacks something", () => {
  const some: Resolved<string> = { found: "some" };
  const at = (nowMs: number) => ({ nowMs, prepare: (references: string) => `of ${references}` });
  const complete = { form: "previous", waitsUntilMs: undefined };

  it("keeps its previous form for 30 s", () => {
    const waiting = nextLinkState(complete, some, at(0));
    expect(waiting).toEqual({ form: "previous", waitsUntilMs: maxWaitMs });
    expect(nextLinkState(waiting, some, at(maxWaitMs - 1)).form).toBe("previous");
    expect(nextLinkState(waiting, some, at(maxWaitMs)).form).toBeUndefined();
  });

  it("does not wait longer because of further changes", () => {
    const waiting = nextLinkState(complete, some, at(0));
    expect(nextLinkState(waiting, some, at(20_000)).waitsUntilMs).toBe(maxWaitMs);
    const givenUp = nextLinkState(waiting, some, at(maxWaitMs));
    expect(nextLinkState(givenUp, some, at(maxWaitMs + 1)).form).toBeUndefined();
  });

  it("gets its new form in one step when everything has arrived", () => {
    const waiting = nextLinkState(complete, some, at(0));
    expect(nextLinkState(waiting, { found: "all", references: "both" }, at(40_000))).toEqual({
      form: "of both",
      waitsUntilMs: undefined,
    });
  });

  it("is not found, without a wait, if it requires an unknown flag", () => {
    expect(nextLinkState(complete, { found: "never" }, at(0)).form).toBeUndefined();
  });
});
